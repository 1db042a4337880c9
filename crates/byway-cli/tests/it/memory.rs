//! What a transfer takes of a machine's memory does not grow with what it carries.

use crate::common::peak::peak_memory;
use crate::common::{Place, Running};
use std::fs::{File, create_dir, remove_dir_all};
use std::io::Write;

/// Bytes of memory of a side's whole process, with program, buffers, hashes and journal: 33 to 55
/// MiB. A receiver whose disk is busy holds a window more, of 32 MiB.
const MOST: u64 = 96 << 20;

#[test]
fn half_a_gibibyte_takes_no_more_than_96_mebibytes_a_side() {
    let place = Place::new();
    create_dir(place.path("tree")).unwrap();
    let mut file = File::create(place.path("tree/large")).unwrap();
    let piece: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    for _ in 0..512 {
        file.write_all(&piece).unwrap();
    }
    for priority in ["normal", "background"] {
        let (receiver, ticket) = place.recv(&["in", "--once"]);
        let there = peak_memory(receiver.id());
        let sender = Running::start(
            place.command("sender", &["send", "tree", &ticket, "--priority", priority, "--json"]),
        );
        let here = peak_memory(sender.id());
        let sent = sender.end();
        sent.succeeded();
        receiver.end().succeeded();
        let peaks = [here.join().unwrap(), there.join().unwrap()];
        assert!(peaks.iter().all(|peak| (1 << 20..MOST).contains(peak)), "{priority}: {peaks:?} bytes");
        crate::common::assert_same(&place.path("tree"), &place.path("in/tree"));
        remove_dir_all(place.path("in")).unwrap();
    }
}
