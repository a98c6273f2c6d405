//! What a peer must not be able to do: make us grow, wait for ever, or die.

use super::*;

/// Twice what a quiet codec keeps, and more than its own state.
const LITTLE: usize = 8 * 1024;

/// A header alone.
fn header(kind: u8, first: u8, length: u16) -> Vec<u8> {
    let mut header = packet(kind, &[]);
    header[0] = first;
    header[16..18].copy_from_slice(&length.to_be_bytes());
    header
}

fn client_fault(bytes: &[u8]) -> Fault {
    let mut client = playing();
    let mut events = told(&mut client, [bytes]);
    assert!(client.is_finished());
    // Whatever follows is not kept.
    for _ in 0..20 {
        assert_eq!(told(&mut client, [&[0; 1 << 20][..]]), []);
    }
    assert!(kept(&client) < LITTLE);
    match events.pop() {
        Some(ClientEvent::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn origin_fault(bytes: &[u8]) -> Fault {
    let mut origin = origin();
    origin.receive(bytes);
    let Some(OriginEvent::Fault(fault)) = origin.poll() else { panic!("{origin:?}") };
    assert!(!origin.wants_read() && !origin.is_finished());
    for _ in 0..20 {
        origin.receive(&[0; 1 << 20]);
        assert_eq!(origin.poll(), None);
    }
    assert!(kept(&origin) < LITTLE);
    let answer = br#"{"application":"unknown","code":500,"id":0,"message":"Server Internals Error"}"#;
    assert_eq!(said(&mut origin)[18..], answer[..]);
    assert!(origin.is_finished());
    fault
}

#[test]
fn a_length_over_the_limit_ends_the_conversation_at_once() {
    for (length, kind) in [(65_535, 30), (65_535, 20), (65_535, 10), (65_535, 99), (32_751, 30)] {
        let header = header(kind, 0x60, length);
        assert_eq!(client_fault(&header), Fault::Length(length));
        assert_eq!(origin_fault(&header), Fault::Length(length));
    }
    assert_eq!(Fault::Length(65_535).to_string(), "a packet says it has 65535 bytes, at most 32750 are allowed");
    let mut client = playing();
    assert_eq!(told(&mut client, [&header(30, 0x60, 32_750)[..]]), []);
    assert!(!client.is_finished());
}

#[test]
fn another_version_ends_the_conversation() {
    for (first, version) in [(0x20, 0), (0xa0, 2), (0xe0, 3)] {
        assert_eq!(client_fault(&header(20, first, 1)), Fault::Version(version));
        assert_eq!(origin_fault(&header(10, first, 1)), Fault::Version(version));
    }
    assert_eq!(origin_fault(b"\x00GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Fault::Version(0));
    // Reserved bits mean nothing.
    let mut client = playing();
    assert_eq!(told(&mut client, [&header(99, 0x7f, 0)[..]]), [ClientEvent::Ignored(Ignored::Packet(99))]);
}

#[test]
fn messages_that_are_none() {
    assert_eq!(client_fault(&packet(20, b"[1]")), Fault::Json);
    assert_eq!(client_fault(&packet(20, b"{\"application\":")), Fault::Json);
    assert_eq!(client_fault(&packet(20, b"\"\xff\"")), Fault::Json);
    assert_eq!(client_fault(&packet(20, &b"[".repeat(30_000))), Fault::Json);
    assert_eq!(client_fault(&packet(20, b"")), Fault::EmptyMessage);
    assert_eq!(origin_fault(&packet(10, b"")), Fault::EmptyMessage);

    let mut origin = origin();
    let answer = br#"{"application":"unknown","code":404,"id":0,"message":"a request is a JSON object"}"#;
    for message in [&b"[1]"[..], b"{\"application\":", b"\"\xff\"", &b"[".repeat(30_000), b"null", b"1"] {
        origin.receive(&packet(10, message));
        assert_eq!(origin.poll(), None);
        assert_eq!(said(&mut origin)[18..], answer[..]);
        assert!(origin.wants_read());
    }
}

#[test]
fn units_that_are_none() {
    assert_eq!(client_fault(&packet(30, &[1])), Fault::UnitTooShort(1));
    assert_eq!(client_fault(&packet(30, &[])), Fault::UnitTooShort(0));
    assert_eq!(client_fault(&packet(30, &[0; 35])), Fault::UnitTooShort(35));
    let mut wrong = unit(0, &[0, 0, 1]);
    wrong[18 + 35] = 4;
    assert_eq!(client_fault(&wrong), Fault::UnitSize { said: 4, came: 3 });
    wrong[18 + 32] = 0xff;
    assert_eq!(client_fault(&wrong), Fault::UnitSize { said: 0xff00_0004, came: 3 });
}

#[test]
fn media_sent_to_an_origin_is_read_past_and_told_once() {
    let mut origin = origin();
    let quiet = kept(&origin);
    for count in 0..1000 {
        origin.receive(&part(30, &[7; 20_000]));
        origin.receive(&packet(30, &[1]));
        let told = origin.poll();
        assert_eq!(told, (count == 0).then_some(OriginEvent::Ignored(Ignored::Packet(30))));
        assert_eq!(origin.poll(), None);
    }
    assert!(kept(&origin) < quiet + 100);
    origin.receive(&all_of(OURS, From::Edge));
    assert!(matches!(origin.poll(), Some(OriginEvent::Request(_))), "the conversation goes on");
}

#[test]
fn packets_and_messages_without_a_meaning_are_passed_over_and_told_once() {
    let mut client = playing();
    let quiet = kept(&client);
    let answer = br#"{"application":"ping","id":1}"#;
    let strange =
        [part(99, &[7; 30_000]), packet(0, &[1]), packet(10, b"x"), packet(20, answer), unit(9, &[1])].concat();
    let expected = [
        ClientEvent::Ignored(Ignored::Packet(99)),
        ClientEvent::Ignored(Ignored::Message),
        ClientEvent::Ignored(Ignored::UnknownTrack(9)),
    ];
    assert_eq!(told(&mut client, [&strange[..]]), expected);
    for _ in 0..1000 {
        assert_eq!(told(&mut client, [&strange[..]]), []);
    }
    assert!(kept(&client) < quiet + 200);

    let mut origin = origin();
    origin.receive(&[packet(99, b"x"), packet(20, answer), packet(20, b"[1]"), packet(0, b"")].concat());
    let events: Vec<_> = std::iter::from_fn(|| origin.poll()).collect();
    assert_eq!(events, [OriginEvent::Ignored(Ignored::Packet(99)), OriginEvent::Ignored(Ignored::Message)]);
    assert!(origin.output().is_empty());
}

#[test]
fn messages_and_units_end_at_their_limits() {
    let (mut client, piece) = (playing(), part(30, &[0; MAX_PAYLOAD]));
    let whole = MAX_UNIT / MAX_PAYLOAD;
    for _ in 0..whole {
        assert_eq!(told(&mut client, [&piece[..]]), []);
    }
    assert_eq!(told(&mut client, [&piece[..18]]), [ClientEvent::Fault(Fault::UnitTooLong(MAX_UNIT))]);
    assert!(kept(&client) < LITTLE);

    let (mut client, piece) = (playing(), part(20, &[b' '; MAX_PAYLOAD]));
    for _ in 0..MAX_MESSAGE / MAX_PAYLOAD {
        assert_eq!(told(&mut client, [&piece[..]]), []);
    }
    assert_eq!(told(&mut client, [&piece[..18]]), [ClientEvent::Fault(Fault::MessageTooLong(MAX_MESSAGE))]);

    let mut long = part(10, &[b' '; MAX_PAYLOAD]).repeat(MAX_REQUEST / MAX_PAYLOAD);
    long.extend(header(10, 0x40, 1000));
    assert_eq!(origin_fault(&long), Fault::MessageTooLong(MAX_REQUEST));
}

#[test]
fn an_edge_that_does_not_take_its_answers_gets_no_more() {
    let mut origin = origin();
    let bad = packet(10, b"[1]");
    let (mut read, mut answers) = (0, 0);
    while origin.wants_read() && read < 100_000 {
        origin.receive(&bad);
        read += 1;
        assert_eq!(origin.poll(), None);
    }
    assert!(!origin.wants_read());
    assert!(origin.output().len() < 65 * 1024 && kept(&origin) < 512 * 1024);
    while !origin.output().is_empty() {
        answers += said(&mut origin).windows(8).filter(|w| w == b"\"unknown").count();
        assert_eq!(origin.poll(), None);
    }
    assert_eq!(answers, read, "each one is answered in the end");
    assert!(origin.wants_read());
}

#[test]
fn an_edge_that_asks_on_while_an_answer_is_due_is_not_read() {
    let mut origin = origin();
    let ask = packet(10, br#"{"application":"describe","id":1,"target":"ovt://a/b/c"}"#);
    let mut read = 0;
    while origin.wants_read() && read < 100_000 {
        origin.receive(&ask);
        origin.poll();
        read += 1;
    }
    assert!(read < 1000, "{read}");
}

#[test]
fn answers_that_are_none() {
    let heard = |message: &str| {
        let mut client = client("ovt://a/b/c");
        let mut events = told(&mut client, [&packet(20, message.as_bytes())[..]]);
        (client.is_finished(), events.pop())
    };
    let fault = |fault| (true, Some(ClientEvent::Fault(fault)));
    let another = || fault(Fault::Answer("belongs to another request"));
    assert_eq!(heard(r#"{"application":"describe","id":1}"#), fault(Fault::Answer("has no code")));
    assert_eq!(heard(r#"{"application":"describe","code":-1,"id":1}"#), fault(Fault::Answer("has no code")));
    assert_eq!(heard(r#"{"application":"describe","code":200,"id":2}"#), another());
    assert_eq!(heard(r#"{"application":"describe","code":200}"#), another());
    assert_eq!(
        heard(r#"{"application":"play","code":200,"id":2}"#),
        (false, Some(ClientEvent::Ignored(Ignored::Message)))
    );
    let described =
        |contents: &str| heard(&format!(r#"{{"application":"describe","code":200,"contents":{contents},"id":1}}"#));
    let no_version = || fault(Fault::Description("has no version"));
    let no_stream = || fault(Fault::Description("has no stream"));
    let no_tracks = || fault(Fault::Description("has no tracks"));
    assert_eq!(described("null"), no_version());
    assert_eq!(described("[1]"), no_version());
    assert_eq!(described(r#"{"version":"18"}"#), no_version());
    assert_eq!(described(r#"{"version":18}"#), no_stream());
    assert_eq!(described(r#"{"version":18,"stream":null}"#), no_stream());
    assert_eq!(described(r#"{"version":18,"stream":[1]}"#), no_stream());
    assert_eq!(described(r#"{"version":18,"stream":7}"#), no_stream());
    assert_eq!(described(r#"{"version":18,"stream":{}}"#), no_tracks());
    assert_eq!(described(r#"{"version":18,"stream":{"tracks":null}}"#), no_tracks());
    let useless = fault(Fault::Description("has no track of a codec that is known here"));
    assert_eq!(described(r#"{"version":18,"stream":{"tracks":[]}}"#), useless);
    assert_eq!(described(r#"{"version":18,"stream":{"tracks":[1,null,{}]}}"#), useless);
    let zero = r#"{"codecId":1,"id":0,"mediaType":0,"timebaseDen":0,"timebaseNum":1}"#;
    assert_eq!(described(&format!(r#"{{"version":18,"stream":{{"tracks":[{zero}]}}}}"#)), useless);
}
