//! The example without sockets does what it says.

#[path = "../../examples/sans_io.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod example;

#[test]
fn two_machines_talk_in_one_loop() {
    let (read, at) = example::run().unwrap();
    assert_eq!(read, b"one loop, two machines");
    // The handshake there and back, and the data.
    assert_eq!(at.as_nanos() / 1_000_000, 30);
}
