use super::*;
use crate::data::Carried;
use alloc::vec;
use byway_wire::frame::ack::{AckWriter, EntryParts};
use byway_wire::frame::{Frame, Frames};
use byway_wire::{ObjectId, Writer};

const WAY: PathId = PathId(0);

fn path() -> SendPath {
    SendPath::new(PathId(0), Instant::ZERO, Some(Duration::from_millis(20)), 1472)
}

fn send(path: &mut SendPath, millis: u64, count: usize) {
    for _ in 0..count {
        let offset = path.next_number() * 1000;
        let packet_data = &[Carried::Object { id: ObjectId(0), offset, length: 1000, fin: false }];
        let packet =
            Outbound { bytes: 1200, eliciting: true, counted: true, app_limited: false, packet_data };
        path.on_sent(Instant::from_millis(millis), packet);
    }
}

fn offsets(carried: &Carried) -> u64 {
    match carried {
        Carried::Object { offset, .. } => offset / 1000,
        _ => panic!("no object"),
    }
}

/// Acknowledges descending `ranges` at `millis`. Returns the newly acknowledged packets, the
/// numbers that arrived, and their delays.
fn ack(
    path: &mut SendPath,
    millis: u64,
    ranges: &[(u64, u64)],
    stamps: &[(u64, u32)],
    lost: u64,
) -> (Option<NewlyAcked>, Vec<u64>, Vec<Delay>) {
    let mut buffer = vec![0; 1200];
    let mut writer = Writer::new(&mut buffer);
    let mut frame = AckWriter::begin(&mut writer);
    let arrival = stamps.first().map_or(0, |(_, stamp)| *stamp);
    frame.entry(
        &mut writer,
        &EntryParts { path: path.id, lost, ce: 0, arrival, held_micros: 0, ranges, stamps },
    );
    frame.finish(&mut writer);
    let Some(Ok(Frame::Ack(entries))) = Frames::new(writer.written()).next() else { panic!("no ACK") };
    let (mut arrived, mut delays) = (Vec::new(), Vec::new());
    let entry = entries.iter().next().unwrap();
    let progress = path.on_ack(Instant::from_millis(millis), &entry, WAY, &mut delays, |carried| {
        arrived.push(offsets(carried))
    });
    (progress, arrived, delays)
}

#[test]
fn acknowledged_packets_leave_the_flight_and_give_samples() {
    let mut path = path();
    send(&mut path, 0, 4);
    assert_eq!(path.in_flight, 4800);
    let (progress, arrived, delays) = ack(&mut path, 30, &[(0, 3)], &[(2, 15_000), (1, 14_000)], 0);
    let progress = progress.unwrap();
    assert_eq!((progress.packets, progress.bytes), (3, 3600));
    assert_eq!(progress.rtt, Some(Duration::from_millis(30)));
    assert_eq!(arrived, [2, 1, 0]);
    assert_eq!(delays.len(), 2, "one sample per batch");
    assert_eq!(delays[1].one_way - delays[0].one_way, 1_000_000);
    assert_eq!(path.in_flight, 1200);
    let (again, arrived, _) = ack(&mut path, 31, &[(0, 3)], &[], 0);
    assert_eq!((again.unwrap().packets, arrived.len()), (0, 0));
}

#[test]
fn an_ack_that_is_told_twice_gives_a_delay_whichever_copy_comes_first() {
    let mut path = path();
    send(&mut path, 0, 1);
    let (_, arrived, delays) = ack(&mut path, 30, &[(0, 1)], &[], 0);
    assert_eq!((arrived.len(), delays.len()), (1, 1));
}

#[test]
fn what_waits_for_its_ack_at_the_receiver_is_not_on_the_way() {
    let mut path = path();
    for round in 0..400 {
        send(&mut path, round * 20, 5);
        let newest = 10_000 + round as u32 * 20_000;
        // Five packets arrive within 4 ms, and the ACK goes with the last of them.
        let stamps: Vec<_> = (0..5).map(|packet| (1, newest - packet * 1_000)).collect();
        ack(&mut path, round * 20 + 20, &[(round * 5, round * 5 + 5)], &stamps, 0);
    }
    assert_eq!(path.rtt.smoothed(), Duration::from_millis(20));
    assert!((10_950..=11_000).contains(&path.window_limit(10_000)), "{}", path.window_limit(10_000));
    path.ack_wait_micros = MAX_ACK_WAIT_MICROS;
    assert_eq!(path.window_limit(10_000), 12_500, "a quarter of the RTT at most");
    assert_eq!(path.window_limit(u64::MAX), u64::MAX);
}

#[test]
fn a_loss_is_met_by_all_that_was_in_flight_before_its_ack() {
    let mut path = path();
    send(&mut path, 0, 20);
    let (progress, ..) = ack(&mut path, 20, &[(1, 11)], &[], 1);
    assert_eq!((progress.unwrap().packets, path.in_flight), (10, 10 * 1200));
    let losses = path.on_missing(Instant::from_millis(20), [(0, 1)].into_iter(), |_| {}).unwrap();
    assert_eq!((losses.packets, losses.in_flight), (1, 20 * 1200));
    let losses = path.on_missing(Instant::from_millis(25), [(11, 12)].into_iter(), |_| {}).unwrap();
    assert_eq!(losses.in_flight, 9 * 1200, "found later, without an ACK");
}

#[test]
fn numbers_never_sent_are_hostile() {
    let mut path = path();
    send(&mut path, 0, 2);
    assert!(ack(&mut path, 10, &[(0, 3)], &[], 0).0.is_none());
    assert_eq!(path.in_flight, 2400);
}

#[test]
fn a_pnack_is_a_loss_and_a_late_ack_undoes_it() {
    let mut path = path();
    send(&mut path, 0, 6);
    ack(&mut path, 20, &[(1, 6)], &[], 1);
    let mut lost = Vec::new();
    let losses = path
        .on_missing(Instant::from_millis(20), [(0, 1)].into_iter(), |carried| lost.push(offsets(carried)))
        .unwrap();
    assert_eq!((losses.packets, losses.bytes, lost), (1, 1200, vec![0]));
    assert_eq!((path.in_flight, path.totals.lost), (0, 1));
    let (progress, ..) = ack(&mut path, 25, &[(0, 6)], &[], 0);
    assert_eq!(progress.unwrap().undone[..], [Instant::ZERO]);
    assert_eq!(path.totals.lost, 0);
}

#[test]
fn holes_are_found_even_if_no_pnack_comes() {
    let mut path = path();
    send(&mut path, 0, 6);
    ack(&mut path, 20, &[(2, 6)], &[], 0);
    let deadline = path.deadline().unwrap();
    assert!(path.detect_losses(deadline - Duration::from_nanos(1), |_| ()).is_none());
    assert_eq!(path.detect_losses(deadline, |_| ()).unwrap().packets, 2);
    // With the receiver's count above the sender's there is nothing to wait for.
    send(&mut path, 30, 6);
    ack(&mut path, 60, &[(8, 12)], &[], 4);
    assert_eq!(path.detect_losses(Instant::from_millis(60), |_| ()).unwrap().packets, 2);
}

#[test]
fn silence_loses_everything_and_backs_off() {
    let mut path = path();
    send(&mut path, 0, 3);
    let first = path.timeout_deadline().unwrap();
    assert_eq!(path.on_timeout(first, |_| ()).unwrap().packets, 3);
    assert_eq!((path.in_flight, path.timeout_deadline()), (0, None));
    send(&mut path, first.as_nanos() / 1_000_000, 1);
    let second = path.timeout_deadline().unwrap().since(Instant::from_millis(first.as_nanos() / 1_000_000));
    assert!(second > first.since(Instant::ZERO));
}

#[test]
fn silence_ends_though_there_is_always_something_newer() {
    let mut path = path();
    send(&mut path, 0, 1);
    ack(&mut path, 20, &[(0, 1)], &[], 0);
    let first = {
        send(&mut path, 1_000, 1);
        path.timeout_deadline().unwrap()
    };
    let timeout = first.since(Instant::from_millis(1_000));
    let mut now = 1_000;
    while path.timeout_deadline().unwrap() > Instant::from_millis(now) {
        now += 5;
        send(&mut path, now, 1);
        assert!(now < 2_000, "it never times out");
    }
    let waited = path.timeout_deadline().unwrap().since(Instant::from_millis(1_000));
    assert_eq!(waited, timeout * 3);
    // What is heard moves it.
    ack(&mut path, now, &[(1, 2)], &[], 0);
    assert!(path.timeout_deadline().unwrap() > Instant::from_millis(now) + timeout / 2);
}

#[test]
fn the_delivery_rate_is_what_was_delivered() {
    let mut path = path();
    // 1200 bytes per millisecond, 20 ms of RTT.
    for millis in 0..200u64 {
        send(&mut path, millis, 1);
        if millis >= 20 {
            ack(&mut path, millis, &[(millis - 20, millis - 19)], &[], 0);
        }
    }
    let rate = path.delivery_rate().unwrap();
    assert!((1_140_000..1_260_000).contains(&rate), "{rate}");
}
