//! The page as a browser meets it, and as others do: over HTTP, with processes that answer.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

mod cost;
mod hostile;
mod page;

use byway_transfer::PauseReason;
use byway_transfer::host_status::{History, RuntimeDirectory, StatusSocket};
use byway_view::{View, ViewPlan, Words};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use tempfile::TempDir;

/// A page with a runtime directory and a history of its own.
struct Place {
    directory: TempDir,
    view: View,
}

/// What a server answers.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let runtime = runtime(&directory);
        let view = View::serve(ViewPlan {
            listen: "127.0.0.1:0".parse().unwrap(),
            directories: Box::new(move || vec![runtime.clone()]),
            history: History::at(directory.path().join("history")),
            has_failed: |entry| entry.result["exit"] != 0,
            words: Words { pause: PauseReason::code, pause_of_path: PauseReason::code },
        });
        Self { directory, view: view.unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.view.address()
    }

    /// A process that answers.
    fn process(&self, verb: &str, answer: impl Fn() -> String + Send + 'static) -> StatusSocket {
        StatusSocket::open(&runtime(&self.directory), verb, move |_| answer()).unwrap()
    }

    /// The path and the query of the address that is printed.
    fn entrance(&self) -> String {
        let url = self.view.url();
        url.strip_prefix(&format!("http://{}", self.address())).unwrap().to_owned()
    }

    /// Opens the printed address. Returns the folder of the page and the cookie.
    fn enter(&self) -> (String, String) {
        let answer = self.get(&self.entrance(), "");
        assert_eq!(answer.status, 303, "{}", answer.head);
        (
            answer.field("location").unwrap(),
            answer.field("set-cookie").unwrap().split(';').next().unwrap().into(),
        )
    }

    fn get(&self, path: &str, fields: &str) -> Answer {
        let mut stream = self.ask("GET", path, fields);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        Answer::of(&text)
    }

    /// A connection that has asked. `fields`: lines of the head.
    fn ask(&self, method: &str, path: &str, fields: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host =
            if fields.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address()) };
        write!(stream, "{method} {path} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n").unwrap();
        stream
    }

    /// The frames that a stream brings.
    fn frames(&self, folder: &str, cookie: &str) -> impl Iterator<Item = Value> {
        let stream = self.ask("GET", &format!("{folder}events"), &format!("Cookie: {cookie}\r\n"));
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
    }
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn field(&self, name: &str) -> Option<String> {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .into_iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    }
}

fn runtime(directory: &TempDir) -> RuntimeDirectory {
    let path = directory.path().join("run");
    let user = rustix::process::geteuid().as_raw();
    RuntimeDirectory::locate(user, |name| (name == "BYWAY_RUNTIME_DIR").then(|| path.clone().into()))
}

/// What a sender tells that has sent so many bytes.
fn sender(seconds: f64, bytes: u64) -> Value {
    let path = json!({
        "path": 0, "name": "direct", "carrier": "udp", "state": "active", "bytes": bytes, "rate_bps": 8e6,
        "local": "127.0.0.1", "remote": "127.0.0.1:9", "rtt_ms": 20.0, "queue_ms": 2.5, "packets": 10, "lost": 1,
    });
    let transfer = json!({
        "seconds": seconds, "bytes": bytes, "total": 1_000_000_000, "rate_bps": 8e6, "pause": "bandwidth_limit",
        "yielded_seconds": 0.0, "added_delay_ms": 1.5, "paths": [path],
    });
    json!({ "verb": "send", "pid": 7, "since": 9, "peer": "nas", "transfers": [transfer], "told": {} })
}
