//! Relay packets, as a relay and as an end host reads them, and the bytes of a relay word.
#![no_main]

use byway_wire::Writer;
use byway_wire::relay::{
    Delivered, Forward, Greet, Greeted, MessageType, Notice, Return, ReturnedPacket, Word,
};
use libfuzzer_sys::fuzz_target;

/// What is read says the same once written.
fn check<T: PartialEq + std::fmt::Debug>(
    value: T,
    write: impl Fn(&T, &mut Writer<'_>),
    read: impl Fn(&[u8]) -> Option<T>,
) {
    let mut buffer = [0; 256];
    let mut writer = Writer::new(&mut buffer);
    write(&value, &mut writer);
    assert!(!writer.overflowed());
    assert_eq!(read(writer.written()), Some(value));
}

fuzz_target!(|packet: &[u8]| {
    let _ = packet.first().map(|first| MessageType::of(*first));
    if let Ok(forward) = Forward::read(packet) {
        assert!(forward.inner < packet.len());
        let _ = forward.unix(1_800_000_000);
    }
    if let Ok(delivered) = Delivered::read(packet) {
        let mut copy = packet.to_vec();
        assert!(delivered.inner < packet.len() && delivered.write(&mut copy));
        assert_eq!(Delivered::read(&copy), Ok(delivered));
    }
    if let Ok(returned) = Return::read(packet) {
        assert!(returned.inner < packet.len());
    }
    if let Ok(back) = ReturnedPacket::read(packet) {
        let mut copy = packet.to_vec();
        assert!(back.inner < packet.len() && back.write(&mut copy));
        assert_eq!(ReturnedPacket::read(&copy), Ok(back));
    }
    if let Ok(greet) = Greet::read(packet) {
        check(greet, Greet::write, |bytes| Greet::read(bytes).ok());
    }
    if let Ok(greeted) = Greeted::read(packet) {
        check(greeted, Greeted::write, |bytes| Greeted::read(bytes).ok());
    }
    if let Ok(notice) = Notice::read(packet) {
        check(notice, Notice::write, |bytes| Notice::read(bytes).ok());
    }
    if let Ok(word) = Word::from_bytes(packet) {
        assert_eq!(word.reveal().parse(), Ok(word));
    }
});
