//! Events by hand, with a round-trip time of 100 ms and packets of 1000 bytes.
#![allow(dead_code)]

use byway_control::{Acked, Congested, Controller, Delay, Opened, Trigger};
use byway_wire::{Duration, Instant, PathId};

pub const PACKET: u32 = 1_000;
pub const RTT: Duration = Duration::from_millis(100);

pub fn opened(proxied: bool) -> Opened {
    Opened { now: Instant::ZERO, proxied, packet_size: PACKET, rtt: Some(RTT) }
}

/// Acknowledges `packets` packets (may be a fraction) that were sent at `sent`, an RTT later. Each
/// had a delay of `delay` ms.
pub fn ack(controller: &mut dyn Controller, path: u32, packets: f64, sent: Instant, delay: i64) {
    let delays = vec![
        Delay { sent_at: sent, one_way: delay * 1_000_000, bytes: PACKET };
        (packets.ceil() as usize).max(1)
    ];
    ack_after(controller, path, packets, sent, RTT, &delays);
}

/// `packets` sent at `sent` are acknowledged `rtt` later.
pub fn ack_after(
    controller: &mut dyn Controller,
    path: u32,
    packets: f64,
    sent: Instant,
    rtt: Duration,
    delays: &[Delay],
) {
    controller.on_acked(
        PathId(path),
        &Acked {
            now: sent + rtt,
            bytes: (packets * f64::from(PACKET)).round() as u64,
            packets: packets as u32,
            sent_at: sent,
            rtt: Some(rtt),
            srtt: rtt,
            min_rtt: rtt,
            delays,
            in_flight: 0,
            app_limited: false,
            delivery_rate: None,
            ce: 0,
        },
    );
}

pub fn congested(trigger: Trigger, sent: Instant, now: Instant) -> Congested {
    Congested {
        trigger,
        first_sent_at: sent,
        sent_at: sent,
        now,
        bytes: u64::from(PACKET),
        in_flight: 1_000_000_000,
    }
}
