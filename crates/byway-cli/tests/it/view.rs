//! `byway view`: the page in a browser. `crates/view` tests what it shows.

use crate::common::{Place, Running};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What a browser gets that opens this address.
fn opened(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_address_is_told_and_good_once_until_the_program_is_interrupted() {
    let place = Place::new();
    let mut view = Running::start(place.command("sender", &["view", "--json"]));
    let url = view.event("ready")["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && url.contains("/?token="), "{url}");
    assert!(opened(&url).starts_with("HTTP/1.1 303 "), "{url}");
    let again = opened(&url);
    assert!(again.starts_with("HTTP/1.1 403 ") && again.contains("Start `byway view` again"), "{again}");
    view.interrupt();
    let result = view.event("result");
    assert_eq!((&result["verb"], &result["exit"]), (&"view".into(), &130.into()));
}

#[test]
fn it_is_served_on_loopback_alone() {
    let place = Place::new();
    for address in ["0.0.0.0:0", "192.0.2.7:80", "[::]:0"] {
        let ended = place.run("sender", &["view", "--no-open", "--listen", address]);
        ended.failed(1, "cannot serve HTTP at");
        assert!(ended.stderr.contains("loopback"), "{}", ended.stderr);
    }
}
