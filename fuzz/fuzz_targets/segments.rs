//! Any IP packet, as a host behind a gateway may send it: it is passed on, or what is rewritten
//! stays a valid segment, once and for all.
#![no_main]

use byway_gateway::clamp::clamp;
use byway_gateway::receive_window::Advertised;
use byway_gateway::tcp_header::Flags;
use byway_gateway::{ChecksumState, Segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // Who vouches for the checksum, the largest segment, the limit, the scale; then the packet as
    // it is.
    let Some((&[state, most, more, limit, shift, scale], original)) = input.split_first_chunk() else {
        return;
    };
    let (most, limit) = (u16::from_be_bytes([most, more]), u64::from(limit) << (shift % 24));
    let state = [ChecksumState::Full, ChecksumState::Checked, ChecksumState::Partial][usize::from(state % 3)];
    let Ok(segment) = Segment::read(original, state) else { return };
    assert!(segment.tcp.at <= segment.tcp.payload && segment.tcp.payload <= segment.ip.end);
    assert!(segment.ip.end <= original.len());
    segment.tcp.walk(original).for_each(drop);

    let (mut packet, mut advertised) = (original.to_vec(), Advertised::default());
    let clamped = clamp(&mut packet, &segment, most);
    let rewritten = advertised.rewrite(&mut packet, &segment, Some(scale), limit);
    assert!(clamped.is_none() || !rewritten, "a SYN's window is not rewritten");
    let read = Segment::read(&packet, state).expect("what was rewritten is still a segment");
    assert_eq!(read.tcp.window != segment.tcp.window, rewritten);
    assert_eq!(
        (read.ip, read.tcp.sequence, read.tcp.flags),
        (segment.ip, segment.tcp.sequence, segment.tcp.flags)
    );
    assert!(read.tcp.window <= segment.tcp.window);
    assert!(read.tcp.window > 0 || segment.tcp.window == 0);
    if read.tcp.flags.any(Flags::SYN) {
        assert!(read.tcp.options.mss.is_none_or(|mss| mss <= most));
    }
    // Nothing else has changed: neither payload and timestamps, nor what pads the packet.
    assert_eq!(packet[read.tcp.payload..], original[segment.tcp.payload..]);
    assert_eq!(packet[..read.tcp.at], original[..segment.tcp.at]);
    assert_eq!(read.tcp.options.timestamps, segment.tcp.options.timestamps);
    // Once more changes nothing.
    let once = packet.clone();
    assert_eq!(clamp(&mut packet, &read, most), None);
    assert!(!advertised.rewrite(&mut packet, &read, Some(scale), limit));
    assert_eq!(packet, once);
    // Completing changes the checksum alone, and only one that is partial.
    let mut completed = read;
    completed.complete(&mut packet);
    assert_eq!(packet[read.tcp.at + 18..], once[read.tcp.at + 18..]);
    assert!(state == ChecksumState::Partial || packet == once);
});
