use std::borrow::Cow;
use std::fmt;

/// Why an exchange cannot go on. Its words hold nothing of what the origin sent, but for the names of codings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The URL cannot be asked for.
    Url(&'static str),
    /// The connection ended before anything of an answer came.
    Unanswered,
    /// The connection ended within a head, or before the length or the last chunk of the content.
    EndedEarly,
    /// The origin speaks TLS on a connection that does not.
    Tls,
    /// The origin speaks HTTP/2 though it was not asked to.
    Http2,
    /// What came is no answer of HTTP/1.1, HTTP/1.0 or ICY.
    NotHttp,
    /// A head has more bytes, or more fields, than is taken.
    HeadTooLarge,
    /// More interim answers (1xx) came than are taken.
    EndlessInterim,
    /// A head is not right; what would be.
    Head(&'static str),
    /// It is not clear where the content ends; what would be.
    Framing(Cow<'static, str>),
    /// The content is encoded in this way though it was asked for as it is.
    ContentCoding(String),
    /// A redirect leads nowhere; why.
    Redirect(&'static str),
}

impl Fault {
    /// The same with `quote` over what in it are the origin's own words.
    pub(crate) fn quoting(self, quote: impl FnOnce(&str) -> String) -> Fault {
        match self {
            Fault::ContentCoding(coding) => Fault::ContentCoding(quote(&coding)),
            other => other,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Url(why) | Fault::Head(why) | Fault::Redirect(why) => f.write_str(why),
            Fault::Unanswered => f.write_str("the origin closed the connection without an answer"),
            Fault::EndedEarly => f.write_str("the answer ended early"),
            Fault::Tls => f.write_str("the origin speaks TLS on this port: https:// is right"),
            Fault::Http2 => f.write_str(
                "the origin answers in HTTP/2, or in something else that is not HTTP/1.1, which it is asked in",
            ),
            Fault::NotHttp => f.write_str("what the origin sends is not HTTP/1.1"),
            Fault::HeadTooLarge => f.write_str("the head of the answer is longer than is taken"),
            Fault::EndlessInterim => f.write_str("the origin sends interim answers without end"),
            Fault::Framing(why) => f.write_str(why),
            Fault::ContentCoding(coding) => {
                write!(f, "the content is encoded with {coding}, though it was asked for as it is")
            }
        }
    }
}

impl std::error::Error for Fault {}
