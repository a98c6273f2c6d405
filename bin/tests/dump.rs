//! `holdfast dump` against a server that never ends its answer: it gives up by itself, and whoever ends it finds nothing left of it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Begins a journal for everybody who asks, and goes on with a byte now and then.
fn endless() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 1024]);
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\nHOLDFST\x02";
                let mut sent = stream.write_all(head);
                while sent.is_ok() {
                    thread::sleep(Duration::from_millis(20));
                    sent = stream.write_all(b"x");
                }
            });
        }
    });
    address
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("holdfast-dump-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).expect("the temporary folder can be written");
    path
}

fn dump(into: &Path, within: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_holdfast"))
        .args(["dump", "--url", &format!("http://{}", endless()), "--within", within, "-o"])
        .arg(into.join("a.journal"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is built")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn left(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("an entry").path()).collect()
}

#[test]
fn an_answer_without_an_end_is_given_up() {
    let directory = directory("endless");
    let output = dump(&directory, "0.3s").wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("not at its end after 300ms") && said(&output).contains("--within"),
        "{}",
        said(&output)
    );
    assert_eq!(left(&directory), Vec::<PathBuf>::new());
    fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn whoever_ends_it_finds_nothing_left_of_it() {
    for signal in ["TERM", "INT", "HUP"] {
        let directory = directory(signal);
        let child = dump(&directory, "10m");
        while left(&directory).iter().all(|file| fs::metadata(file).map_or(0, |found| found.len()) == 0) {
            thread::sleep(Duration::from_millis(1));
        }
        let killed =
            Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("there is kill");
        assert!(killed.success());
        let output = child.wait_with_output().expect("it ends");
        assert!(said(&output).contains(&format!("ended by SIG{signal}: nothing is kept")), "{}", said(&output));
        assert!(output.status.code().is_some_and(|code| code > 128), "{:?}", output.status);
        assert_eq!(left(&directory), Vec::<PathBuf>::new(), "{signal}");
        fs::remove_dir_all(&directory).expect("it is ours");
    }
}

/// One after another within a second, without a name for any.
#[test]
fn whoever_asks_again_at_once_has_a_second_file() {
    let directory = directory("again");
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 1024]);
            let answer =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 8\r\n\r\nHOLDFST\x02";
            let _ = stream.write_all(answer);
        }
    });
    let dumps: Vec<Child> = (0..8)
        .map(|_| {
            Command::new(env!("CARGO_BIN_EXE_holdfast"))
                .args(["dump", "--url", &url])
                .current_dir(&directory)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program is built")
        })
        .collect();
    let mut told: Vec<String> = Vec::new();
    for dump in dumps {
        let output = dump.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        told.push(text.split(' ').next().expect("a name").to_owned());
    }
    told.sort();
    let mut files: Vec<String> =
        left(&directory).iter().map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect();
    files.sort();
    assert_eq!(told, files, "each says where it is");
    fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn an_address_at_which_no_edge_can_be_is_refused_with_the_right_form() {
    for url in ["ftp://127.0.0.1/", "127.0.0.1:8080"] {
        let output = Command::new(env!("CARGO_BIN_EXE_holdfast"))
            .args(["dump", "--url", url])
            .output()
            .expect("the program is built");
        assert_eq!(output.status.code(), Some(2), "{url}: {}", said(&output));
        assert!(said(&output).contains("http://ADDRESS:PORT"), "{url}: {}", said(&output));
    }
}
