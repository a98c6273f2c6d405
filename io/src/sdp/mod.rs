//! Is this offer, answer or fragment right, and what is in it?
//!
//! The text side of WHIP (RFC 9725), without a socket and without media: what a publisher sends is checked and brought
//! into the one shape the media side takes, what the media side answers is brought into the shape publishers take.
//! Lines that mean nothing here pass through as they came.
//!
//! | module | question it answers |
//! |---|---|
//! | [`Offer`] | may this offer be negotiated, and what does the publisher get back? |
//! | [`Fragment`] | which candidates and credentials does this PATCH bring? |
//! | [`patch`] | is this PATCH a trickle, an ICE restart, or out of date? |
//! | [`Candidate`] | can the server use this ICE candidate? |
//! | [`Credentials`] | are this username fragment and password well formed? |

mod answer;
mod candidate;
mod credentials;
mod fragment;
mod offer;
pub mod patch;
mod text;

pub use answer::AnswerFault;
pub use candidate::{Candidate, CandidateFault, MAX_CANDIDATES};
pub use credentials::{Credentials, with_credentials};
pub use fragment::{Fragment, FragmentFault, restart_fragment};
pub use offer::{Codec, Kind, Offer, OfferFault, Section};
pub use text::{AttributeFault, MAX_BODY, MAX_LINE, MAX_LINES, TextFault};
