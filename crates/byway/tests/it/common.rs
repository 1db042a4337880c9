//! Two endpoints on loopback.

use byway::{Config, Endpoint, Peer};
use std::io::Write;
use std::time::{Duration, Instant};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn config() -> Config {
    Config::new().protocol("test/1").unwrap().bind(["127.0.0.1:0".parse().unwrap()])
}

/// A listener, who connected to it, and the listener's end of that.
pub fn pair_with(here: Config, there: Config) -> (Endpoint, Peer, Peer) {
    let listener = Endpoint::listen(there).unwrap();
    let near = byway::connect_with(&listener.ticket(), here).unwrap();
    let far = listener.accept().unwrap();
    (listener, near, far)
}

pub fn pair() -> (Endpoint, Peer, Peer) {
    pair_with(config(), config())
}

/// Bytes that are the same for the same seed.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Waits for a condition.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes everything that is taken within `patience`; how much that is.
pub fn write_until_blocked(stream: &mut byway::SendStream, patience: Duration) -> usize {
    stream.set_timeout(Some(patience));
    let (piece, mut taken) = (vec![7; 64 << 10], 0);
    loop {
        match stream.write(&piece) {
            Ok(length) => taken += length,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
                return taken;
            }
        }
    }
}
