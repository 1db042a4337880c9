//! Estimates what a tunnel to a peer can carry: the bytes that each flow may have in flight, packet
//! sizes, and round trips. Its sources are the tunnel's paths and the flows that send.

use super::carried_flow::CarriedFlows;
use super::config::Settings;
use super::index_vec::TunnelIdx;
use super::tunnel_estimate::TunnelEstimate;
use super::tunnel_sessions::Tunnel;
use crate::clamp::best_packet;
use crate::encap::header_len;
use crate::receive_window::{PathWindow, View, share, total};
use alloc::vec::Vec;
use byway_engine::Connection;
use byway_wire::{Duration, Instant};

/// Time for which an estimate of a tunnel's windows, packet sizes and delays is valid:
/// `ESTIMATE_LIFETIME`, plus `LIFETIME_PER_FLOW` for each flow that sends. The work grows with the
/// flows, so with 10,000 flows an estimate is made only every 110 ms.
const ESTIMATE_LIFETIME: Duration = Duration::from_millis(10);
/// The part of that time for each flow that sends.
const LIFETIME_PER_FLOW: Duration = Duration::from_micros(10);
/// Time for which a flow counts as sending after its last data.
const SENDING_TIME: Duration = Duration::from_secs(1);
/// Bytes that a flow may always have in flight: ten segments (RFC 6928).
const MIN_SHARE_BYTES: u64 = 14_600;

/// Computes estimates of tunnels. It keeps only memory for its lists.
#[derive(Debug, Default)]
pub(super) struct TunnelEstimator {
    windows: Vec<PathWindow>,
    receivers: Vec<u64>,
}

impl TunnelEstimator {
    /// Renews the estimate of a tunnel, if it is due. `connection` is the session that carries the
    /// tunnel's packets.
    pub fn look(
        &mut self,
        now: Instant,
        (place, tunnel): (TunnelIdx, &mut Tunnel),
        connection: Option<&Connection>,
        flows: &mut CarriedFlows,
        settings: &Settings,
    ) {
        if now < tunnel.way.until {
            return;
        }
        let way = connection
            .and_then(|connection| self.way(now, (place, &mut *tunnel), connection, flows, settings));
        // While no path is usable, what was known holds: packets wait for one, and need not be
        // smaller.
        let way = way.unwrap_or(tunnel.way);
        let flows = u32::try_from(tunnel.sending.len()).unwrap_or(u32::MAX);
        tunnel.way = TunnelEstimate { until: now + ESTIMATE_LIFETIME + LIFETIME_PER_FLOW * flows, ..way };
    }

    fn way(
        &mut self,
        now: Instant,
        (place, tunnel): (TunnelIdx, &mut Tunnel),
        connection: &Connection,
        flows: &mut CarriedFlows,
        settings: &Settings,
    ) -> Option<TunnelEstimate> {
        let Self { windows, receivers } = self;
        let usable = || connection.path_views().filter(|view| view.usable);
        let rtt = usable().map(|view| view.srtt).min()?;
        let largest = || usable().map(|view| view.largest.saturating_sub(header_len(settings.loss)));
        let (best, largest) = (best_packet(largest), largest().max()?);
        windows.clear();
        windows.extend(usable().map(|view| PathWindow { window: view.window, rtt: view.srtt }));
        // What leaves together arrives as far apart as the paths differ: acknowledgments of all
        // come back by the same way.
        let longest = usable().map(|view| view.srtt).max()?;
        let apart = longest.saturating_sub(rtt);
        // On a single path nothing waits where it cannot be seen.
        let longest = if usable().nth(1).is_some() { longest } else { Duration::ZERO };
        let reorder_wait = settings.timer.by_way(tunnel.delays(now), apart);
        receivers.clear();
        let mut inner_rtt = rtt;
        tunnel.sending.retain(|id| {
            let flow = flows.get_mut(*id).filter(|flow| flow.data.tunnel == place);
            let Some(data) = flow.map(|flow| &mut flow.data) else { return false };
            if data.sent_at.is_none_or(|at| now.since(at) >= SENDING_TIME) {
                data.sent_at = None;
                return false;
            }
            receivers.push(data.receiver);
            inner_rtt = inner_rtt.max(data.rtt.unwrap_or_default());
            true
        });
        if receivers.is_empty() {
            receivers.push(u64::MAX); // whoever begins
        }
        let flow_limit = settings.window.map_or(u64::MAX, |rule| {
            let total = total(rule, &View { paths: windows, inner_rtt, reorder_wait: apart });
            // It waits at the entry, which is not to drop what was asked for.
            let most = settings.entry.flow_bytes as u64 / 2;
            let headroom = (total / 100 * u64::from(settings.headroom_percent)).min(most);
            share(total.saturating_add(headroom), receivers, MIN_SHARE_BYTES)
        });
        Some(TunnelEstimate { until: now, flow_limit, largest, best, rtt, longest, reorder_wait })
    }
}
