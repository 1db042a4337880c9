//! What a TCP connection brings, cut into datagrams: however it is cut into reads, the same comes
//! out, and what is held is bounded.
#![no_main]

use byway_wire::framing::{LENGTH_PREFIX_LEN, TcpFrames, prefix};
use libfuzzer_sys::fuzz_target;

/// What comes of `bytes` that are read in pieces as long as `steps` says, and whether they end in
/// what is no frame.
fn taken(bytes: &[u8], steps: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let (mut frames, mut got) = (TcpFrames::default(), Vec::new());
    let (mut bytes, mut turn) = (bytes.to_vec(), steps.iter().cycle());
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let step = turn.next().map_or(rest.len(), |step| usize::from(*step) + 1).min(rest.len());
        let (piece, after) = rest.split_at_mut(step);
        rest = after;
        if frames.take(piece, |payload| got.push(payload.to_vec())).is_err() {
            return (got, true);
        }
        assert!(frames.begun() < LENGTH_PREFIX_LEN + usize::from(u16::MAX));
    }
    (got, false)
}

fuzz_target!(|input: &[u8]| {
    let Some((count, rest)) = input.split_first() else { return };
    let (steps, bytes) = rest.split_at(usize::from(count % 8).min(rest.len()));
    let (whole, broken) = taken(bytes, &[]);
    assert_eq!(taken(bytes, steps), (whole.clone(), broken));
    assert_eq!(taken(bytes, &[0]), (whole.clone(), broken));
    // What came out is what a sender would have framed so.
    let framed: Vec<u8> =
        whole.iter().flat_map(|it| [&prefix(it.len()).expect("not empty")[..], it].concat()).collect();
    assert!(bytes.starts_with(&framed));
});
