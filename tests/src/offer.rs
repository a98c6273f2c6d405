//! SDP offers and fragments nobody stands behind: they are negotiated, and no packet ever follows.

/// What an offer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracks {
    /// One audio and one video section.
    Both,
    /// One audio section.
    Audio,
    /// One video section.
    Video,
}

/// An ICE user fragment and password.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// `ice-ufrag`.
    pub ufrag: String,
    /// `ice-pwd`.
    pub password: String,
}

impl Credentials {
    /// The `number`th pair; equal numbers give equal pairs.
    pub fn numbered(number: u32) -> Credentials {
        Credentials { ufrag: format!("uf{number:04}"), password: format!("password{number:04}0123456789abcdef") }
    }
}

const FINGERPRINT: &str = "a=fingerprint:sha-256 7B:8B:F0:65:5F:78:E2:51:3B:AC:6F:F3:3F:46:1B:35:\
DC:B8:5F:64:1A:24:C2:43:F0:A1:58:D0:A1:2C:19:08\r\n";

fn section(kind: &str, mid: u32, credentials: &Credentials) -> String {
    let (payload, attributes) = match kind {
        "audio" => ("111", "a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n"),
        _ => (
            "96",
            "a=rtpmap:96 H264/90000\r\n\
             a=fmtp:96 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n\
             a=rtcp-fb:96 nack\r\na=rtcp-fb:96 nack pli\r\na=rtcp-fb:96 ccm fir\r\n",
        ),
    };
    format!(
        "m={kind} 9 UDP/TLS/RTP/SAVPF {payload}\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n\
         a=ice-ufrag:{}\r\na=ice-pwd:{}\r\na=ice-options:trickle\r\n{FINGERPRINT}a=setup:actpass\r\na=mid:{mid}\r\n\
         a=sendonly\r\na=msid:stream track{mid}\r\na=rtcp-mux\r\na=rtcp-rsize\r\n{attributes}\
         a=ssrc:{}{mid} cname:offer\r\n",
        credentials.ufrag, credentials.password, 4_100
    )
}

/// An offer as a browser makes it, with these credentials.
pub fn with(tracks: Tracks, credentials: &Credentials) -> String {
    let kinds: &[&str] = match tracks {
        Tracks::Both => &["audio", "video"],
        Tracks::Audio => &["audio"],
        Tracks::Video => &["video"],
    };
    let mids: Vec<String> = (0..kinds.len()).map(|mid| mid.to_string()).collect();
    let mut sdp = format!(
        "v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE {}\r\n\
         a=extmap-allow-mixed\r\na=msid-semantic: WMS stream\r\n",
        mids.join(" ")
    );
    for (mid, kind) in (0..).zip(kinds) {
        sdp += &section(kind, mid, credentials);
    }
    sdp
}

/// An audio and video offer.
pub fn plain() -> String {
    with(Tracks::Both, &Credentials::numbered(1))
}

/// A fragment with these credentials and candidates, for the first section of [`plain`].
pub fn fragment(credentials: &Credentials, candidates: &[&str]) -> String {
    let mut text = format!(
        "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n",
        credentials.ufrag, credentials.password
    );
    for candidate in candidates {
        text += &format!("a=candidate:{candidate}\r\n");
    }
    text
}

/// The value of the first `a=name:` line of an SDP text.
pub fn attribute(sdp: &str, name: &str) -> Option<String> {
    let prefix = format!("a={name}:");
    sdp.lines().find_map(|line| line.trim_end().strip_prefix(&prefix).map(str::to_owned))
}
