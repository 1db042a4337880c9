//! Data headers and handshake packets: what is read is written back the same.
#![no_main]

use byway_wire::Writer;
use byway_wire::packet::{BASE_DATAGRAM, HEADER_LEN, Handshake, Header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    if let Ok(header) = Header::read(packet) {
        let mut buffer = [0; HEADER_LEN];
        let mut writer = Writer::new(&mut buffer);
        header.write(&mut writer);
        assert!(!writer.overflowed());
        assert_eq!(writer.written(), &packet[..HEADER_LEN]);
    }
    let _ = Handshake::hello_reply_id(packet);
    if let Ok(handshake) = Handshake::read(packet) {
        let mut buffer = vec![0; packet.len().max(BASE_DATAGRAM)];
        let mut writer = Writer::new(&mut buffer);
        handshake.write(&mut writer);
        assert!(!writer.overflowed());
        assert_eq!(Handshake::read(writer.written()), Ok(handshake));
    }
});
