//! Lowers the receive window in ACKs that go to a sending host. So the host's bytes in flight fit
//! what the paths between gateways carry in a round trip (paper: Harp, III.F). Otherwise packets
//! would be lost at the entry gateway.

use crate::tcp_header::{Flags, MAX_SCALE, WINDOW_AT, before, later};
use crate::tcp_segment::Segment;
use byway_wire::Duration;

/// How the total is made of the paths' windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowRule {
    /// The bytes that all paths deliver within the round trip between the hosts (`inner RTT`) and
    /// the time for restoring the order (`wait`). This is `sum(w_i / RTT_i) * (inner RTT + wait)`,
    /// where path `i` has the congestion window `w_i`.
    #[default]
    Delivered,
    /// The sum of the paths' windows, as in Harp.
    Literal,
}

/// All rules for windows in ACKs. `None`: ACKs pass unchanged.
pub const ALL_WINDOW_RULES: [Option<WindowRule>; 3] =
    [Some(WindowRule::Delivered), Some(WindowRule::Literal), None];

/// The name of `rule`.
#[must_use]
pub const fn name(rule: Option<WindowRule>) -> &'static str {
    match rule {
        Some(WindowRule::Delivered) => "delivered",
        Some(WindowRule::Literal) => "literal",
        None => "off",
    }
}

/// A path that takes data, so not a choked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathWindow {
    /// Congestion window, bytes.
    pub window: u64,
    /// Smoothed round trip of the path.
    pub rtt: Duration,
}

/// The inputs from which the total window is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// The paths that take data.
    pub paths: &'a [PathWindow],
    /// Round trip between the hosts, through both gateways. Nothing less than the fastest path's
    /// makes sense.
    pub inner_rtt: Duration,
    /// The time that a packet may wait at the exit to be put in order.
    pub reorder_wait: Duration,
}

/// Bytes that all flows together may have in flight.
#[must_use]
pub fn total(rule: WindowRule, view: &View<'_>) -> u64 {
    let sum: u128 = match rule {
        WindowRule::Literal => view.paths.iter().map(|path| u128::from(path.window)).sum(),
        WindowRule::Delivered => {
            let time = view.inner_rtt.saturating_add(view.reorder_wait).as_nanos();
            // A path without a round trip yet counts as if it had the flow's.
            let delivered = |path: &PathWindow| match path.rtt.as_nanos() {
                0 => path.window.into(),
                rtt => u128::from(path.window).saturating_mul(time) / rtt,
            };
            view.paths.iter().map(delivered).fold(0, u128::saturating_add)
        }
    };
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// The most bytes that each flow may have in flight, so that all share `total` bytes (max-min
/// fair). `receivers`: the flows' receive windows in bytes; they get sorted. `u64::MAX` if `total`
/// suffices for all. Never below `least`, to avoid tiny segments (RFC 9293, section 3.8.6.2).
#[must_use]
pub fn share(total: u64, receivers: &mut [u64], least: u64) -> u64 {
    receivers.sort_unstable();
    let mut left = total;
    let mut flows = receivers.len() as u64;
    for receiver in receivers.iter() {
        let level = left / flows.max(1);
        if *receiver > level {
            return level.max(least);
        }
        left -= *receiver;
        flows -= 1;
    }
    u64::MAX
}

/// The receive window that was advertised to the sender of one direction of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advertised {
    /// The sequence number after the last byte that the sender was permitted to send.
    edge: Option<u32>,
}

impl Advertised {
    /// The window field for an ACK of `acknowledgment`, in units of 2^`scale` bytes. It allows the
    /// sender at most `limit` bytes in flight. It is never larger than `window`, the receiver's own
    /// field. Sequence numbers once allowed stay allowed (RFC 9293, section 3.8.6).
    #[must_use]
    pub const fn window(&self, acknowledgment: u32, window: u16, scale: u8, limit: u64) -> u16 {
        let promised = match self.edge {
            Some(edge) if before(acknowledgment, edge) => edge.wrapping_sub(acknowledgment) as u64,
            _ => 0,
        };
        let bytes = if limit > promised { limit } else { promised };
        let scale = at_most(scale);
        // Upwards, so that the edge is not taken back by rounding, nor a small limit becomes a
        // window of zero.
        let units = bytes.saturating_add((1 << scale) - 1) >> scale;
        let units = if units == 0 { 1 } else { units };
        if units < window as u64 { units as u16 } else { window }
    }

    /// Notes an ACK that goes to the sender.
    pub const fn on_sent(&mut self, acknowledgment: u32, window: u16, scale: u8) {
        let edge = acknowledgment.wrapping_add((window as u32) << at_most(scale));
        self.edge = Some(match self.edge {
            Some(before) => later(before, edge),
            None => edge,
        });
    }

    /// Lowers the receive window in `packet`, an ACK to the data's sender. Returns whether the
    /// packet was changed. `scale`: the receiver's window scale; with `None` the window stays. A
    /// SYN's window, which is never scaled, stays as well.
    pub fn rewrite(&mut self, packet: &mut [u8], segment: &Segment, scale: Option<u8>, limit: u64) -> bool {
        let tcp = &segment.tcp;
        if !tcp.flags.any(Flags::ACK) || tcp.flags.any(Flags::RST) {
            return false;
        }
        if tcp.flags.any(Flags::SYN) {
            self.on_sent(tcp.acknowledgment, tcp.window, 0);
            return false;
        }
        let Some(scale) = scale else { return false };
        let window = self.window(tcp.acknowledgment, tcp.window, scale, limit);
        self.on_sent(tcp.acknowledgment, window, scale);
        window != tcp.window && segment.set_word(packet, tcp.at + WINDOW_AT, window)
    }
}

/// Limits a window scale, as hosts do (RFC 7323, section 2.3).
const fn at_most(scale: u8) -> u8 {
    if scale > MAX_SCALE { MAX_SCALE } else { scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::ChecksumState;
    use crate::testing::{tcp_v4, tcp_v6};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_windows_of_the_paths_are_not_what_the_flow_needs() {
        // Three full paths of 10 Mbit/s. With 20, 30 and 40 ms they hold 25, 37.5 and 50 kB.
        let path = |rtt| PathWindow { window: 1_250 * rtt, rtt: MS(rtt) };
        let paths = [path(20), path(30), path(40)];
        let view = View { paths: &paths, inner_rtt: MS(44), reorder_wait: MS(10) };
        let rate = |bytes: u64, rtt: u64| bytes * 8 / rtt / 1_000; // Mbit/s
        // In order, everything takes as long as by the slowest path.
        assert_eq!(rate(total(WindowRule::Literal, &view), 40), 22, "as the readings have it");
        assert_eq!(total(WindowRule::Delivered, &view), 3 * 1_250 * 54);
        assert_eq!(rate(total(WindowRule::Delivered, &view), 54), 30);
        let unknown = [PathWindow { window: 3_000, rtt: Duration::ZERO }];
        assert_eq!(total(WindowRule::Delivered, &View { paths: &unknown, ..view }), 3_000);
        assert_eq!(total(WindowRule::Delivered, &View { paths: &[], ..view }), 0);
        let endless = [PathWindow { window: u64::MAX, rtt: Duration::from_nanos(1) }; 2];
        assert_eq!(total(WindowRule::Delivered, &View { paths: &endless, ..view }), u64::MAX);
    }

    #[test]
    fn flows_that_take_little_leave_the_rest_to_others() {
        let share = |total, mut receivers: Vec<u64>| share(total, &mut receivers, 3_000);
        assert_eq!(share(90_000, alloc::vec![1 << 20; 3]), 30_000);
        assert_eq!(share(90_000, alloc::vec![1 << 20, 10_000, 1 << 20]), 40_000);
        assert_eq!(share(90_000, alloc::vec![10_000, 20_000]), u64::MAX);
        assert_eq!(share(90_000, alloc::vec![1 << 20; 1_000]), 3_000);
        assert_eq!(share(90_000, alloc::vec![]), u64::MAX);
    }

    #[test]
    fn zero_stays_zero_and_an_edge_is_never_taken_back() {
        let mut advertised = Advertised::default();
        assert_eq!(advertised.window(1_000, 0, 7, 50_000), 0);
        assert_eq!(advertised.window(1_000, 500, 7, 12_800), 100);
        assert_eq!(advertised.window(1_000, 500, 7, 12_801), 101, "upwards");
        assert_eq!(advertised.window(1_000, 500, 7, 0), 1, "nobody but the receiver closes a window");
        advertised.on_sent(1_000, 100, 7);
        assert_eq!(advertised.window(1_000, 500, 7, 1_280), 100);
        assert_eq!(advertised.window(1_000 + 6_400, 500, 7, 1_280), 50);
        assert_eq!(advertised.window(1_000 + 12_800, 500, 7, 1_280), 10);
        assert_eq!(advertised.window(900, 500, 7, 1_280), 101, "an older ACK, late");
        assert_eq!(advertised.window(1_000, 30, 7, 1_280), 30, "the receiver may take back what it likes");
    }

    #[test]
    fn a_scale_beyond_the_largest_is_the_largest() {
        let (mut advertised, mut largest) = (Advertised::default(), Advertised::default());
        advertised.on_sent(5, 9, u8::MAX);
        largest.on_sent(5, 9, MAX_SCALE);
        assert_eq!(advertised, largest);
        assert_eq!(advertised.window(5, 100, 200, 0), 9);
    }

    #[test]
    fn what_holds_no_window_is_left_alone() {
        let packet = tcp_v4(b"");
        let with = |flags: u16| {
            let mut segment = Segment::read(&packet, ChecksumState::Full).unwrap();
            segment.tcp.flags = Flags(flags);
            let (mut packet, mut advertised) = (packet.clone(), Advertised::default());
            let changed = advertised.rewrite(&mut packet, &segment, Some(0), 100);
            (changed, advertised.edge)
        };
        let ack = 0x9abc_def0;
        assert_eq!(with(0x10), (true, Some(ack + 100)));
        assert_eq!(with(0x12), (false, Some(ack + 500)), "a SYN's window counts as it is");
        assert_eq!((with(0x02), with(0x14), with(0x01)), ((false, None), (false, None), (false, None)));
        let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
        assert!(!Advertised::default().rewrite(&mut packet.clone(), &segment, None, 100));
    }

    proptest! {
        #[test]
        fn whatever_the_limits_do_the_sender_sees_a_receiver_that_keeps_its_word(
            v6: bool, scale in 0u8..=14, start: u32,
            acks in prop::collection::vec((0u32..20_000, 0u32..40_000, 0u64..2_000_000), 1..60)
        ) {
            let mut packet = if v6 { tcp_v6(b"") } else { tcp_v4(b"") };
            let mut advertised = Advertised::default();
            // The receiver's own edge never goes back.
            let (mut ack, mut edge, mut seen) = (start, start, None);
            for (acked, opened, limit) in acks {
                ack = ack.wrapping_add(acked);
                edge = later(edge.wrapping_add(opened), ack);
                let own = (edge.wrapping_sub(ack) >> scale).min(65_535) as u16;
                edge = ack.wrapping_add(u32::from(own) << scale);
                let view = Segment::read(&packet, ChecksumState::Full).unwrap();
                for (at, value) in [(8, (ack >> 16) as u16), (10, ack as u16), (WINDOW_AT, own)] {
                    view.set_word(&mut packet, view.tcp.at + at, value);
                }
                let segment = Segment::read(&packet, ChecksumState::Full).unwrap();
                let changed = advertised.rewrite(&mut packet, &segment, Some(scale), limit);
                let told = Segment::read(&packet, ChecksumState::Full).unwrap();
                prop_assert_eq!(changed, told != segment);
                prop_assert!(told.tcp.window <= own);
                prop_assert_eq!(told.tcp.window == 0, own == 0);
                let bytes = u64::from(told.tcp.window) << scale;
                let promised = seen.filter(|seen| before(ack, *seen)).map_or(0, |seen| u64::from(seen.wrapping_sub(ack)));
                prop_assert!(bytes < limit.max(promised).max(1) + (1 << scale));
                let new = ack.wrapping_add(bytes as u32);
                if let Some(seen) = seen {
                    prop_assert!(!before(new, seen) || told.tcp.window == own);
                }
                seen = Some(seen.map_or(new, |seen| later(seen, new)));
                // Once more changes nothing.
                prop_assert!(!advertised.rewrite(&mut packet, &told, Some(scale), limit));
            }
        }
    }
}
