//! Parts of titles that one player asks for: which one goes on, and which one waits.

use holdfast_io::server::LinkId;

use crate::desk::Desk;
use crate::titles::{FILM, WHOLE, body, desk, status_of};

/// An answer whose body follows.
pub fn begun(desk: &mut Desk, link: LinkId) {
    desk.link_says(link, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n0123");
}

#[test]
fn a_seek_takes_the_place_of_what_played() {
    let mut desk = desk();
    let first = desk.wants(FILM, "Range: bytes=0-\r\n");
    let (link, _) = desk.asked_of_provider();
    begun(&mut desk, link);
    assert_eq!(status_of(&desk.read(first)), 200);
    let second = desk.wants(FILM, "Range: bytes=500-\r\n");
    assert!(desk.closed.contains(&first), "it need not be awaited");
    let (other, asked) = desk.asked_of_provider();
    assert!(other != link && asked.contains("bytes=500-"), "{asked}");
    desk.link_says(other, "HTTP/1.1 206 x\r\nContent-Range: bytes 500-502/503\r\n\r\nabc");
    assert_eq!(body(&desk.read(second)), "abc");
    // Before anything came.
    let third = desk.wants(FILM, "");
    let fourth = desk.wants(FILM, "");
    let told = desk.read(third);
    assert_eq!(status_of(&told), 503, "{told}");
    assert!(told.contains("superseded") && desk.closed.contains(&third), "nobody asks for more there: {told}");
    let (link, _) = desk.asked_of_provider();
    desk.link_says(link, format!("{WHOLE}0123456789"));
    assert_eq!(body(&desk.read(fourth)), "0123456789");
}

#[test]
fn parts_wait_for_one_another_but_not_for_who_takes_nothing() {
    let mut desk = desk();
    let part = |from: u64| format!("Range: bytes={from}-{}\r\n", from + 9);
    let first = desk.wants(FILM, &part(0));
    let second = desk.wants(FILM, &part(10));
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=0-9"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/100\r\n\r\n0123456789");
    assert_eq!(body(&desk.read(first)), "0123456789");
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=10-19"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 10-19/100\r\n\r\n");
    desk.writable = false;
    desk.link_says(link, "012");
    let third = desk.wants(FILM, &part(20));
    desk.run(desk.now + 900);
    assert_eq!(desk.link().0, link, "it may take it yet");
    desk.run(desk.now + 200);
    assert!(desk.closed.contains(&second));
    desk.writable = true;
    let (link, asked) = desk.asked_of_provider();
    assert!(asked.contains("bytes=20-29"), "{asked}");
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 20-29/100\r\n\r\n0123456789");
    assert_eq!(body(&desk.read(third)), "0123456789");
}

#[test]
fn a_part_that_others_wait_for_is_read_ahead() {
    let mut desk = desk();
    let first = desk.wants(FILM, "Range: bytes=0-999999\r\n");
    let (link, _) = desk.asked_of_provider();
    desk.writable = false;
    desk.link_says(link, "HTTP/1.1 206 x\r\nContent-Range: bytes 0-999999/2000000\r\n\r\n");
    desk.link_says(link, vec![7; 300_000]);
    assert!(!desk.server.link_wants_read(link));
    let second = desk.wants(FILM, "Range: bytes=1000000-1000002\r\n");
    assert!(desk.server.link_wants_read(link));
    desk.takes(first, 1000);
    desk.link_says(link, vec![7; 700_000]);
    let (other, asked) = desk.asked_of_provider();
    assert!(other != link && asked.contains("bytes=1000000-"), "the provider is done with the first: {asked}");
    desk.run(desk.now + 500);
    desk.writable = true;
    desk.link_says(other, "HTTP/1.1 206 x\r\nContent-Range: bytes 1000000-1000002/2000000\r\n\r\nabc");
    assert_eq!(body(&desk.read(second)), "abc");
    desk.takes(first, usize::MAX);
    let taken = desk.written.remove(&first).unwrap();
    assert_eq!(taken.iter().filter(|byte| **byte == 7).count(), 1_000_000);
}
