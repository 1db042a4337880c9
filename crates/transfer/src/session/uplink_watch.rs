//! Has a session wait for what this host itself sends by the same uplink. Sessions of byway on this
//! host share what is left.

use crate::sockets;
use byway_engine::Connection;
use byway_engine::connection::uplink_gate::UplinkLimit;
use byway_engine::connection::uplink_use::{DataPath, UplinkUse};
use byway_net::{LedgerNews, RouteTraffic, UplinkLedger, source_for, way_out};
use byway_uplink::shared_queue::MAX_PATHS;
use byway_uplink::{Governor, InterfaceCounters, OtherSessions, Permission, SessionReading};
use byway_wire::{Duration, Instant};
use std::net::{IpAddr, SocketAddr};

/// The counters are read this often at most.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// After this time, whether all paths leave by one interface is looked up again.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Above this rate in bytes per second, nobody notices the queue of a request, and looks would cost
/// more than they gain.
const MAX_GOVERNED_RATE: u64 = 125_000_000;
/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADER_BYTES: u64 = 14 + 20 + 8;

/// Governs what one session sends.
#[derive(Default)]
pub(crate) struct UplinkWatch {
    governed: Option<GovernedUplink>,
    /// Whether the session sends data that can be governed.
    sends: bool,
    looked_at: Option<Instant>,
    checked_at: Option<Instant>,
    /// Packets and bytes that the session had sent when they were last entered.
    entered: (u64, u64),
}

/// The interface by which all data leave.
struct GovernedUplink {
    interface: u32,
    governor: Governor,
    traffic: RouteTraffic,
    ledger: UplinkLedger,
}

impl UplinkWatch {
    /// Looks at the uplink, if it is time, and limits what the connection sends. `locals`: the
    /// addresses of its sockets.
    pub(crate) fn turn(&mut self, connection: &mut Connection, locals: &[SocketAddr], now: Instant) {
        if is_past(self.looked_at, LOOK_INTERVAL, now) {
            self.looked_at = Some(now);
            let used = connection.uplink_use(now).filter(|it| it.own_rate <= MAX_GOVERNED_RATE);
            self.sends = used.is_some();
            if let Some(used) = used {
                self.look(connection, &used, locals, now);
            }
        }
        let governed = self.governed.as_mut().filter(|_| self.sends);
        let Permission { rate, closed_until } =
            governed.map(|governed| governed.governor.permission(now)).unwrap_or_default();
        connection.set_uplink_limit(now, UplinkLimit { rate, closed_until });
    }

    fn look(&mut self, connection: &Connection, used: &UplinkUse, locals: &[SocketAddr], now: Instant) {
        if is_past(self.checked_at, CHECK_INTERVAL, now) {
            self.checked_at = Some(now);
            self.find_interface(connection, locals, now);
        }
        let (packets, bytes) = used.sent;
        let sent =
            bytes.saturating_sub(self.entered.1) + packets.saturating_sub(self.entered.0) * HEADER_BYTES;
        self.entered = used.sent;
        let Some(GovernedUplink { governor, traffic, ledger, .. }) = &mut self.governed else { return };
        let Ok(LedgerNews { sent: others_sent, active, before }) = ledger.exchange(sent) else {
            self.governed = None;
            return;
        };
        governor.on_sent(sent, now);
        governor.on_others(OtherSessions { sent: others_sent, active, before }, now);
        let shown = traffic.look(now).bytes;
        governor.look(shown.map(|(sent, received)| InterfaceCounters { sent, received }), now);
        let reading = SessionReading {
            acked_bytes: used.acked_bytes,
            newest_acked_at: now - used.newest_acked_age,
            queueing: used.queueing,
            own_rate: used.own_rate,
            is_limited: used.is_limited,
            has_data: used.has_data,
        };
        governor.read(&reading, connection.data_paths().map(|path| (path.id.0, path.pace)), now);
    }

    /// Finds the interface by which all data leave. If it is another than before, nothing is known
    /// of it.
    fn find_interface(&mut self, connection: &Connection, locals: &[SocketAddr], now: Instant) {
        let paths: Vec<DataPath> = connection.data_paths().take(MAX_PATHS + 1).collect();
        let remote = paths.first().map(|path| path.remote.ip());
        let own = sockets::own_addresses();
        let mut found = paths.iter().map(|path| interface_of(path, locals, &own));
        let first = found.next().flatten().filter(|_| paths.len() <= MAX_PATHS);
        let interface = first.filter(|first| found.all(|other| other == Some(*first)));
        if self.governed.as_ref().map(|it| it.interface) == interface {
            return;
        }
        self.governed = interface.zip(remote).and_then(|(interface, remote)| {
            let ledger = UplinkLedger::open(interface).ok()?;
            let (governor, traffic) = (Governor::new(now), RouteTraffic::new(remote));
            Some(GovernedUplink { interface, governor, traffic, ledger })
        });
    }
}

fn is_past(at: Option<Instant>, interval: Duration, now: Instant) -> bool {
    at.is_none_or(|at| now.since(at) >= interval)
}

/// The interface by which a path's datagrams leave this host. `None`: they do not, or the system
/// does not say.
fn interface_of(path: &DataPath, locals: &[SocketAddr], own: &[IpAddr]) -> Option<u32> {
    let remote = path.remote.ip().to_canonical();
    if remote.is_loopback() || own.contains(&remote) {
        return None;
    }
    let local = locals.get(usize::from(path.local.0)).map(|local| local.ip().to_canonical());
    let source = local.filter(|local: &IpAddr| !local.is_unspecified()).or_else(|| source_for(remote))?;
    way_out(source, remote).ok()?
}
