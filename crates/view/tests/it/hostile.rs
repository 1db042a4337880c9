//! Who must not see anything, and who must not make anything grow.

use super::{Place, sender};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

#[test]
fn an_address_is_good_for_one_visit_and_the_cookie_for_the_rest() {
    let place = Place::new();
    let entrance = place.entrance();
    let first = place.get(&entrance, "");
    assert_eq!(first.status, 303);
    let cookie = first.field("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let folder = first.field("location").unwrap();
    assert!(cookie.contains(&format!("Path={folder}")), "{cookie}");
    let again = place.get(&entrance, "");
    assert_eq!(again.status, 403);
    assert!(again.body.contains("Start `byway view` again"), "{}", again.body);
    assert!(!place.view.url().contains("token"), "it is used");
    for path in
        ["/", "/?token=", "/?token=x", &folder, &format!("{folder}events"), &format!("{folder}history.json")]
    {
        let answer = place.get(path, "");
        assert_eq!(answer.status, 403, "{path}");
        assert!(answer.body.contains("byway view") && answer.field("set-cookie").is_none(), "{path}");
        assert_eq!(answer.field("referrer-policy").as_deref(), Some("no-referrer"), "{path}");
    }
    let cookie = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert_eq!(place.get(&folder, &cookie).status, 200);
    assert_eq!(place.get("/", &cookie).status, 404, "it has no other page");
}

#[test]
fn another_sites_browser_gets_nothing_and_uses_nothing_up() {
    let place = Place::new();
    let entrance = place.entrance();
    for fields in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n",
    ] {
        assert_eq!(place.get(&entrance, fields).status, 403, "{fields}");
    }
    for host in ["127.evil.example", "evil.example", "127.0.0.1.nip.io", "localhost.evil.example"] {
        assert_eq!(place.get(&entrance, &format!("Host: {host}\r\n")).status, 421, "{host}");
    }
    let (folder, cookie) = place.enter();
    let cookie = format!("Cookie: {cookie}\r\n");
    for path in [folder.clone(), format!("{folder}events"), format!("{folder}words.json")] {
        for fields in ["Sec-Fetch-Site: cross-site\r\n", "Origin: http://evil.example\r\n"] {
            assert_eq!(place.get(&path, &format!("{cookie}{fields}")).status, 403, "{path} {fields}");
        }
        assert_eq!(place.get(&path, &format!("{cookie}Host: 127.evil.example\r\n")).status, 421, "{path}");
    }
}

#[test]
fn it_answers_get_alone() {
    let place = Place::new();
    let entrance = place.entrance();
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let mut text = String::new();
        place.ask(method, &entrance, "Content-Length: 0\r\n").read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 405"), "{method}: {text}");
    }
    place.enter();
}

#[test]
fn clients_that_never_read_hold_up_nobody() {
    let place = Place::new();
    let _process = place.process("send", || sender(1.0, 7).to_string());
    let (folder, cookie) = place.enter();
    let fields = format!("Cookie: {cookie}\r\n");
    // More streams than there may be. None is read.
    let deaf: Vec<TcpStream> =
        (0..40).map(|_| place.ask("GET", &format!("{folder}events"), &fields)).collect();
    let begun = Instant::now();
    assert_eq!(place.frames(&folder, &cookie).take(3).count(), 3);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    drop(deaf);
}

#[test]
fn a_thousand_streams_end_the_oldest_and_the_newest_is_served() {
    let place = Place::new();
    let (folder, cookie) = place.enter();
    let fields = format!("Cookie: {cookie}\r\n");
    let mut streams = Vec::new();
    for _ in 0..1_000 {
        streams.push(place.ask("GET", &format!("{folder}events"), &fields));
        // The test has few descriptors, too.
        if streams.len() > 200 {
            streams.remove(0);
        }
    }
    assert_eq!(place.frames(&folder, &cookie).take(2).count(), 2);
}

/// The process whose socket's name begins so.
fn of<'a>(frame: &'a Value, name: &str) -> &'a Value {
    let processes = frame["processes"].as_array().unwrap();
    processes.iter().find(|process| process["id"].as_str().unwrap().starts_with(name)).unwrap()
}

#[test]
fn processes_that_answer_garbage_are_told_and_hide_no_other() {
    let place = Place::new();
    let _good = place.process("send", || sender(1.0, 7).to_string());
    let _garbage = place.process("garbage", || "\u{0}\u{1b}[2J{".repeat(1_000));
    let _megabyte = place.process("megabyte", || "x".repeat(1 << 20));
    let _nested = place.process("nested", || "[".repeat(1 << 20));
    let _crowd = place.process("crowd", || {
        let path = json!({ "path": 1, "name": "\u{202e}".repeat(200), "bytes": u64::MAX, "rate_bps": 1e308 });
        let transfer =
            json!({ "seconds": 1e300, "bytes": u64::MAX, "rate_bps": -1e308, "paths": vec![path; 900] });
        json!({ "verb": "send", "pid": 1, "since": u64::MAX, "transfers": vec![transfer; 4] }).to_string()
    });
    // One listens and never answers.
    let _silent = UnixListener::bind(place.directory.path().join("run/a-silent-1.socket")).unwrap();
    let (folder, cookie) = place.enter();
    // On a busy machine a process may be late once.
    let is_told = |frame: &Value| of(frame, "send")["transfers"][0]["pause"] == "bandwidth_limit";
    let frame = place.frames(&folder, &cookie).take(60).find(is_told).unwrap();
    for problem in ["garbage", "megabyte", "nested", "a-silent"] {
        assert!(of(&frame, problem)["problem"].is_string(), "{problem}");
    }
    assert!(of(&frame, "garbage")["problem"].as_str().unwrap().contains("makes no sense"));
    assert!(of(&frame, "a-silent")["problem"].as_str().unwrap().contains("does not answer"));
    assert!(serde_json::to_string(&frame).unwrap().len() < 200_000, "a frame stays small");
}

#[test]
fn heads_that_never_end_are_closed() {
    let place = Place::new();
    let mut slow: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(place.address()).unwrap()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").unwrap();
    }
    place.enter();
}
