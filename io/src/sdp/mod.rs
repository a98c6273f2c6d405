//! Is this offer, answer or fragment right, and what is in it?

/// One ICE candidate line, without `a=`: usable (UDP, component 1, literal address, port not 0).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate(pub String);

/// A checked offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// SDP as the media side gets it.
    pub text: String,
}
