//! Processes that tell of transfers which nobody makes, for a look at the page: their status
//! sockets are in DIR, until this program is killed.
//!
//! ```sh
//! cargo run -p byway-view --example crowd -- DIR            # a few, of each kind
//! cargo run -p byway-view --example crowd -- DIR 100 64     # 100 senders with 64 paths each
//! ```
//!
//! With a few, bytes really leave from 192.0.2.1, 192.0.2.2 and 198.51.100.2, as far as the host
//! has these addresses.

use byway_transfer::host_status::{RuntimeDirectory, StatusSocket};
use serde_json::{Value, json};
use std::error::Error;
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest payload that leaves in one packet.
const DATAGRAM_LEN: usize = 1_400;
/// How long a turn of all that goes up and down takes.
const PERIOD_SECONDS: f64 = 97.0;
/// How far rates go up and down, as a part of their mean.
const SWING_SHARE: f64 = 0.2;

/// A path whose rate goes up and down around a mean.
#[derive(Clone)]
struct Path {
    name: String,
    local: &'static str,
    remote: String,
    mean_bps: f64,
    base_ms: f64,
    queue_ms: f64,
    /// Of 10,000 packets, how many are lost.
    loss: f64,
    pause: Option<&'static str>,
}

impl Path {
    fn new(name: &str, local: &'static str, mean_bps: f64) -> Self {
        Self {
            name: name.into(),
            local,
            remote: "203.0.113.7:4747".into(),
            mean_bps,
            base_ms: 27.0,
            queue_ms: 4.0,
            loss: 0.0,
            pause: None,
        }
    }

    /// What the path tells at this second of the transfer.
    fn told(&self, number: usize, seconds: f64) -> Value {
        let turn = std::f64::consts::TAU / PERIOD_SECONDS;
        let phase = number as f64;
        let wave = (seconds * turn + phase).sin();
        // The integral of the rate.
        let swing = SWING_SHARE / turn * (phase.cos() - (seconds * turn + phase).cos());
        let bytes = (self.mean_bps / 8.0 * (seconds + swing)).max(0.0);
        let packets = bytes / DATAGRAM_LEN as f64;
        let queue = (self.queue_ms * (1.2 + wave) + (seconds * 7.3 + phase).sin().abs() * 1.5).max(0.0);
        json!({
            "path": number, "name": self.name, "carrier": "udp", "local": self.local, "remote": self.remote,
            "state": if self.pause == Some("yielding") { "choked" } else { "active" },
            "bytes": bytes as u64, "rate_bps": self.mean_bps * (1.0 + SWING_SHARE * wave),
            "rtt_ms": self.base_ms + queue, "base_rtt_ms": self.base_ms, "queue_ms": queue,
            "packets": packets as u64, "lost": (packets * self.loss / 1e4) as u64, "pause": self.pause,
        })
    }
}

/// A sender with its paths.
struct Sender {
    peer: Option<&'static str>,
    total: u64,
    pause: Option<&'static str>,
    paths: Vec<Path>,
}

impl Sender {
    fn told(&self, since: u64, seconds: f64) -> Value {
        let paths: Vec<Value> =
            self.paths.iter().enumerate().map(|(number, path)| path.told(number, seconds)).collect();
        let sum = |field: &str| paths.iter().filter_map(|path| path[field].as_f64()).sum::<f64>();
        let (bytes, rate) = (sum("bytes") as u64, sum("rate_bps"));
        json!({
            "verb": "send", "pid": 4_711, "since": since, "peer": self.peer, "told": {},
            "transfers": [{
                "seconds": seconds, "bytes": bytes, "total": self.total, "rate_bps": rate, "pause": self.pause,
                "yielded_seconds": seconds * 0.06, "added_delay_ms": 3.1, "paths": paths,
            }],
        })
    }
}

/// A receiver of a file whose name is meant to do harm.
fn receiver(since: u64, seconds: f64) -> Value {
    let bytes = (seconds * 150_000.0) as u64;
    json!({
        "verb": "recv", "pid": 4_712, "since": since, "listen": ["0.0.0.0:4747"], "told": {},
        "transfers": [{
            "transfer": 3, "from": "byway-key-2x4kq7hmzzpab7uwq4lfnrz2", "seconds": seconds, "rate_bps": 1.2e6,
            "name": "<img src=x onerror=\"document.title='harmed'\">\u{202e}gpj.exe", "bytes": bytes, "total": 400_000_000,
            "paths": [{
                "path": 0, "name": "direct", "carrier": "udp", "remote": "192.0.2.1:50000", "state": "active",
                "bytes": bytes, "rate_bps": 1.2e6, "rtt_ms": 41.0,
            }],
        }],
    })
}

fn relay(since: u64, seconds: f64) -> Value {
    let carried = (seconds * 250_000.0) as u64;
    let counters = json!({
        "forwarded_bytes": carried, "returned_bytes": carried / 40, "today_bytes": carried, "grants": 4,
    });
    json!({
        "verb": "relay", "pid": 4_713, "since": since, "listen": ["0.0.0.0:4748"], "transfers": [],
        "told": { "counters": counters },
    })
}

/// The senders of the small scene.
fn scene() -> [Sender; 2] {
    let [home, radio] = ["192.0.2.2", "198.51.100.2"];
    let relay = |name: &str, local, bps, base_ms| Path { base_ms, ..Path::new(name, local, bps) };
    let yielding = Sender {
        peer: Some("nas"),
        total: 900_000_000,
        pause: Some("yielding"),
        paths: vec![
            Path {
                pause: Some("yielding"),
                queue_ms: 9.0,
                loss: 12.0,
                ..Path::new("direct from 192.0.2.2", home, 4.1e6)
            },
            relay("relay 203.0.113.9:4748 from 192.0.2.2", home, 1.4e6, 74.0),
            Path {
                queue_ms: 2.0,
                loss: 60.0,
                ..relay("relay 203.0.113.20:4748 from 198.51.100.2", radio, 2.3e6, 58.0)
            },
        ],
    };
    let limited = Sender {
        peer: Some("cellar"),
        total: 3 << 30,
        pause: Some("bandwidth_limit"),
        paths: vec![Path { queue_ms: 0.4, ..Path::new("direct", home, 0.52e6) }],
    };
    [yielding, limited]
}

/// Sends so much from an address to another, where nobody listens, forever. Nothing is sent if the
/// host does not have the address.
fn send_from(local: &'static str, there: &'static str, bps: f64) {
    let Ok(socket) = UdpSocket::bind((local, 0)) else { return };
    thread::spawn(move || {
        let pause = Duration::from_secs_f64(DATAGRAM_LEN as f64 * 8.0 / bps);
        let mut next = Instant::now();
        loop {
            let _ = socket.send_to(&[7; DATAGRAM_LEN], there);
            next += pause;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let place = arguments.first().ok_or("crowd DIR [SENDERS PATHS]")?.clone();
    let user = rustix::process::geteuid().as_raw();
    let directory =
        RuntimeDirectory::locate(user, |name| (name == "BYWAY_RUNTIME_DIR").then(|| place.clone().into()));
    let begun = Instant::now();
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let now = move || begun.elapsed().as_secs_f64() + 1.0;
    let mut sockets = Vec::new();
    let numbers: Vec<usize> = arguments.iter().skip(1).map(|word| word.parse()).collect::<Result<_, _>>()?;
    if let [senders, paths] = *numbers {
        for number in 0..senders {
            let path = |path: usize| {
                Path::new(&format!("relay 203.0.113.{path}:4748"), "127.0.0.1", 1e5 * (1 + path % 9) as f64)
            };
            let sender = Sender {
                peer: Some("nas"),
                total: 1 << 40,
                pause: None,
                paths: (0..paths).map(path).collect(),
            };
            // A verb may have 64 sockets in one process.
            let verb = format!("send{}", number / 50);
            sockets
                .push(StatusSocket::open(&directory, &verb, move |_| sender.told(since, now()).to_string())?);
        }
    } else {
        for (sender, verb) in scene().into_iter().zip(["send", "send-cellar"]) {
            sockets
                .push(StatusSocket::open(&directory, verb, move |_| sender.told(since, now()).to_string())?);
        }
        sockets.push(StatusSocket::open(&directory, "recv", move |_| receiver(since, now()).to_string())?);
        sockets.push(StatusSocket::open(&directory, "relay", move |_| relay(since, now()).to_string())?);
        sockets.push(StatusSocket::open(&directory, "stuck", |_| "{\"verb\":".into())?);
        // What the paths carry, and what others do. Each host has some of these addresses.
        send_from("192.0.2.2", "192.0.2.1:9", 9.0e6);
        send_from("192.0.2.1", "192.0.2.2:9", 2.1e6);
        send_from("198.51.100.2", "198.51.100.1:9", 3.4e6);
    }
    println!("{} sockets", sockets.len());
    loop {
        thread::park();
    }
}
