//! The frames of a packet: every list inside them ends, and what is read is written back with the
//! same meaning.
#![no_main]

use byway_wire::Writer;
use byway_wire::frame::{Frame, Frames, Ranges};
use libfuzzer_sys::fuzz_target;

/// First, and one past the last: none is empty, none goes back.
fn ascend(missing: &Ranges<'_>) {
    let mut end = 0;
    for (first, past) in missing.iter() {
        assert!(first < past && first >= end, "{first}..{past} after {end}");
        end = past;
    }
}

fuzz_target!(|payload: &[u8]| {
    for frame in Frames::new(payload).map_while(Result::ok) {
        match &frame {
            Frame::Ack(entries) => {
                for entry in entries.iter() {
                    for (first, past) in entry.ranges() {
                        assert!(first < past && past <= entry.largest + 1);
                    }
                    let _ = entry.stamps().count();
                }
                continue; // written entry by entry, from parts
            }
            Frame::Pnack { missing, .. }
            | Frame::SnackStream { missing, .. }
            | Frame::SnackObject { missing, .. } => ascend(missing),
            _ => {}
        }
        // A length that was implied is written out, and a number may have come in a longer form:
        // room for both.
        let mut buffer = vec![0; payload.len() + 64];
        let mut writer = Writer::new(&mut buffer);
        frame.write(&mut writer);
        assert!(!writer.overflowed(), "{frame:?}");
        let again = Frames::new(writer.written()).next();
        assert_eq!(again, Some(Ok(frame)));
    }
});
