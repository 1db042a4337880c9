//! Heartbeats of relays and their answers, as either end reads them.
#![no_main]

use byway_wire::Writer;
use byway_wire::heartbeat::{ANSWERED_LEN, BEAT_LEN, Heartbeat, HeartbeatAnswer};
use byway_wire::relay::RelayKey;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    let key = RelayKey::new(&[7; 32]).range_key(5).heartbeat_key();
    let mut buffer = [0; BEAT_LEN];
    let mut writer = Writer::new(&mut buffer);
    if let Ok(beat) = Heartbeat::read(packet) {
        assert!(packet.len() == BEAT_LEN && usize::from(beat.report.range) < 128);
        beat.write(&mut writer);
        assert_eq!(writer.written(), packet);
        assert_eq!(beat.is_authentic(&key), beat == Heartbeat::new(beat.report, &key));
    } else if let Ok(answered) = HeartbeatAnswer::read(packet) {
        assert!(packet.len() == ANSWERED_LEN);
        answered.write(&mut writer);
        assert_eq!(writer.written(), packet);
        assert_eq!(answered.is_authentic(&key), answered == HeartbeatAnswer::new(answered.orders, &key));
    }
});
