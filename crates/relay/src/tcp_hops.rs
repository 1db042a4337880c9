//! TCP connections of a relay: where the packets of each connection go, and when the relay stops
//! reading from a connection.
//!
//! | case | the relay |
//! |---|---|
//! | the destination has a connection to this relay | sends there |
//! | the destination has none | dials it, once for each incoming connection |
//! | the destination does not accept | sends over UDP |
//! | an outgoing connection is full | stops reading from connections that send only there |
//! | the same, for a connection of several destinations | drops packets that find no room |

use crate::send_queue::SendAddress;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use byway_wire::framing::prefix;
use byway_wire::relay::canonical;
use byway_wire::{ConnectionChange, Duration, Ecn, Instant, Local, RoomChange, TcpRequest};
use core::net::SocketAddr;

/// Time that a destination may take to accept a connection. The kernel has repeated the SYN once by
/// then.
const DIAL_TIMEOUT: Duration = Duration::from_millis(2_500);
/// Bytes that are kept while a destination is dialled.
const MAX_HELD_BYTES: usize = 16 << 10;
/// Time without a valid packet after which a connection counts as unused. A receiver greets its
/// relay three times in this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The most connections that the relay remembers as neighbours of one connection: those it feeds,
/// or that feed it.
const MAX_NEIGHBOURS: usize = 64;
/// The most TCP connections at once that the relay opens toward destinations for one grant.
const MAX_GRANT_CONNECTIONS: usize = 256;

/// The next hop of the packets from one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextConnection {
    /// The relay has not dialled a destination for this connection.
    Open,
    /// The relay is dialling this destination.
    Dialing(SocketAddr),
    /// The relay has a TCP connection to this destination, opened for this connection.
    Connection(SocketAddr, Local),
    /// The destination accepted no TCP connection, so packets leave over UDP.
    Datagrams,
}

/// A TCP connection of the relay.
#[derive(Debug)]
struct Hop {
    peer: SocketAddr,
    /// The peer's address in the form that the driver has.
    remote: SocketAddr,
    onward: NextConnection,
    /// The incoming connection for whose packets the relay dialled this one. `None`: the peer
    /// opened it.
    dialed_for: Option<Local>,
    /// The grant of the first packet on this connection.
    grant: Option<u32>,
    /// When the connection last brought a valid packet. `None`: never.
    good_at: Option<Instant>,
    full: bool,
    paused: bool,
    /// The time until which the relay does not read from the connection, because its grant's rate
    /// is exceeded.
    owes_until: Option<Instant>,
    /// The connections to which this one's packets go. `fed_by`: those whose packets go to this
    /// one.
    feeds: Vec<Local>,
    fed_by: Vec<Local>,
    /// Frames that wait for the destination to accept.
    held: Vec<u8>,
}

/// The next hop of a packet that arrived over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextHop {
    /// The packet leaves by this connection. `full`: the connection has no room for the packet.
    Connection { way: SendAddress, full: bool },
    /// The relay must dial the destination first. The packet waits for that.
    Dial,
    /// The packet waits for the destination that is being dialled. `full`: no more packets may
    /// wait.
    Wait { full: bool },
    /// The grant has [`MAX_GRANT_CONNECTIONS`] outgoing connections, so no other is opened.
    TooMany,
    /// The packet leaves over UDP.
    Datagrams,
}

/// All TCP connections of a relay.
#[derive(Debug, Default)]
pub(crate) struct Hops {
    all: Vec<Option<Hop>>,
    /// Connections that peers opened, by the peers' addresses.
    came: BTreeMap<SocketAddr, Local>,
    /// Destinations that are being dialled, and the connection whose packets wait for each. `None`:
    /// that connection closed.
    dialing: VecDeque<(SocketAddr, Option<Local>)>,
    /// Number of connections that were first used under each grant.
    of_grants: BTreeMap<u32, usize>,
    owing: BTreeSet<(Instant, Local)>,
    asks: VecDeque<TcpRequest>,
    now: Instant,
}

/// The frames that waited for a destination, and the connection from which they came.
pub(crate) type HeldFrames = (Local, Vec<u8>);

impl Hops {
    fn get(&self, local: Local) -> Option<&Hop> {
        self.all.get(local.connection_index()?)?.as_ref()
    }

    fn get_mut(&mut self, local: Local) -> Option<&mut Hop> {
        self.all.get_mut(local.connection_index()?)?.as_mut()
    }

    /// Handles a new TCP connection. Returns the frames that waited for it, and their destination.
    pub(crate) fn opened(
        &mut self,
        now: Instant,
        change: &ConnectionChange,
    ) -> Option<(SendAddress, HeldFrames)> {
        self.now = now;
        let ConnectionChange { local, peer, .. } = *change;
        let peer = canonical(peer);
        let index = local.connection_index()?;
        if self.all.len() <= index {
            self.all.resize_with(index + 1, || None);
        }
        let dialed = self.dialing.iter().position(|(to, _)| *to == peer);
        let wanted = dialed.and_then(|at| self.dialing.remove(at)).map(|(_, by)| by);
        let hop = Hop {
            peer,
            remote: change.peer,
            onward: NextConnection::Open,
            dialed_for: wanted.flatten(),
            grant: None,
            good_at: None,
            full: false,
            paused: false,
            owes_until: None,
            feeds: Vec::new(),
            fed_by: Vec::new(),
            held: Vec::new(),
        };
        if let Some(slot) = self.all.get_mut(index) {
            *slot = Some(hop);
        }
        match wanted {
            None => {
                self.came.insert(peer, local);
                None
            }
            Some(None) => {
                self.asks.push_back(TcpRequest::Close(local));
                None
            }
            Some(Some(by)) => {
                let from = self.get_mut(by)?;
                from.onward = NextConnection::Connection(peer, local);
                let held = core::mem::take(&mut from.held);
                self.settle(by);
                Some((SendAddress { local, remote: change.peer, ecn: Ecn::NotEct }, (by, held)))
            }
        }
    }

    /// A destination refused a TCP connection. Returns the frames that waited for it, which then
    /// leave over UDP.
    pub(crate) fn not_dialed(&mut self, peer: SocketAddr) -> Option<HeldFrames> {
        let peer = canonical(peer);
        let at = self.dialing.iter().position(|(to, _)| *to == peer)?;
        let by = self.dialing.remove(at)?.1?;
        let from = self.get_mut(by)?;
        from.onward = NextConnection::Datagrams;
        let held = core::mem::take(&mut from.held);
        self.settle(by);
        Some((by, held))
    }

    /// Handles the end of a connection. Connections that only served it are closed, so that their
    /// peers learn that packets may be lost.
    pub(crate) fn closed(&mut self, local: Local) {
        let Some(gone) =
            local.connection_index().and_then(|index| self.all.get_mut(index)).and_then(Option::take)
        else {
            return;
        };
        if self.came.get(&gone.peer) == Some(&local) {
            self.came.remove(&gone.peer);
        }
        if let Some(grant) = gone.grant
            && let Some(count) = self.of_grants.get_mut(&grant)
        {
            *count -= 1;
            if *count == 0 {
                self.of_grants.remove(&grant);
            }
        }
        if let Some(at) = gone.owes_until {
            self.owing.remove(&(at, local));
        }
        for (_, by) in &mut self.dialing {
            *by = by.filter(|by| *by != local);
        }
        let own = match gone.onward {
            NextConnection::Connection(_, to) => Some(to),
            _ => gone.dialed_for,
        };
        let others: BTreeSet<Local> = gone.feeds.iter().chain(&gone.fed_by).copied().chain(own).collect();
        for other in others {
            let Some(hop) = self.get_mut(other) else { continue };
            hop.feeds.retain(|it| *it != local);
            hop.fed_by.retain(|it| *it != local);
            // A receiver that stands here goes on without a sender. A sender whose receiver is gone
            // begins again.
            let led_here = gone.fed_by.contains(&other) && hop.feeds.is_empty() && hop.grant.is_some();
            if own == Some(other) || led_here {
                self.asks.push_back(TcpRequest::Close(other));
            } else {
                self.settle(other);
            }
        }
    }

    /// A connection became full, or has room again. Pauses or resumes the connections whose packets
    /// go to it.
    pub(crate) fn room(&mut self, change: RoomChange) {
        let Some(hop) = self.get_mut(change.local) else { return };
        hop.full = !change.room;
        let filled_by = core::mem::take(&mut hop.fed_by);
        for from in &filled_by {
            self.settle(*from);
        }
        if let Some(hop) = self.get_mut(change.local) {
            hop.fed_by = filled_by;
        }
    }

    /// Pauses reading from a connection if it must wait, and resumes it otherwise.
    fn settle(&mut self, local: Local) {
        let Some(hop) = self.get(local) else { return };
        let waits = matches!(hop.onward, NextConnection::Dialing(_))
            || hop.owes_until.is_some()
            || matches!(hop.feeds.as_slice(), [only] if self.get(*only).is_some_and(|to| to.full));
        if waits != hop.paused {
            self.asks.push_back(if waits { TcpRequest::Pause(local) } else { TcpRequest::Resume(local) });
            if let Some(hop) = self.get_mut(local) {
                hop.paused = waits;
            }
        }
    }

    /// Returns the next hop of a packet for a sender or receiver at `to`, without any change.
    pub(crate) fn next(&self, from: Local, to: SocketAddr, may_dial: Option<u32>) -> NextHop {
        if self.all.is_empty() {
            return NextHop::Datagrams;
        }
        let hop = self.get(from);
        let onward = hop.map_or(NextConnection::Datagrams, |hop| hop.onward);
        let by = |local: Local| {
            let Some(next) = self.get(local) else { return NextHop::Datagrams };
            let way = SendAddress { local, remote: next.remote, ecn: Ecn::NotEct };
            // Who leads there alone is held back soon, and what it brought until then finds room.
            let alone = hop.is_some_and(|hop| matches!(hop.feeds.as_slice(), [] | [_]));
            NextHop::Connection { way, full: next.full && !alone }
        };
        match onward {
            NextConnection::Connection(there, local) if there == to => return by(local),
            NextConnection::Dialing(there) if there == to => {
                return NextHop::Wait { full: hop.is_some_and(|hop| hop.held.len() > MAX_HELD_BYTES) };
            }
            _ => {}
        }
        // Even the one that it came by: who tests a relay sends to itself.
        if let Some(local) = self.came.get(&to) {
            return by(*local);
        }
        match (onward, may_dial) {
            (NextConnection::Open, Some(grant)) => match self.of_grants.get(&grant) {
                Some(MAX_GRANT_CONNECTIONS..) => NextHop::TooMany,
                _ => NextHop::Dial,
            },
            _ => NextHop::Datagrams,
        }
    }

    /// Has a destination dialled.
    pub(crate) fn dial(&mut self, from: Local, to: SocketAddr, grant: u32) {
        self.use_under(from, grant);
        let Some(hop) = self.get_mut(from) else { return };
        hop.onward = NextConnection::Dialing(to);
        self.dialing.push_back((to, Some(from)));
        self.asks.push_back(TcpRequest::Dial { peer: to, patience: DIAL_TIMEOUT });
        self.settle(from);
    }

    /// Notes the grant under which a connection is used. Only the first grant of a connection
    /// counts.
    fn use_under(&mut self, local: Local, grant: u32) {
        if let Some(hop) = self.get_mut(local).filter(|hop| hop.grant.is_none()) {
            hop.grant = Some(grant);
            *self.of_grants.entry(grant).or_default() += 1;
        }
    }

    /// Keeps a packet until the destination accepts.
    pub(crate) fn hold(&mut self, from: Local, packet: &[u8]) -> bool {
        let Some(hop) = self.get_mut(from) else { return false };
        let Some(prefix) = prefix(packet.len()).filter(|_| hop.held.len() <= MAX_HELD_BYTES) else {
            return false;
        };
        hop.held.extend_from_slice(&prefix);
        hop.held.extend_from_slice(packet);
        true
    }

    /// A packet that came by `from` leaves by `to`.
    pub(crate) fn leads(&mut self, from: Local, to: Local, grant: Option<u32>) {
        if let Some(grant) = grant {
            self.use_under(from, grant);
        }
        let Some(hop) = self.get_mut(from) else { return };
        if !to.is_connection() || hop.feeds.contains(&to) || hop.feeds.len() == MAX_NEIGHBOURS {
            return;
        }
        hop.feeds.push(to);
        if let Some(next) = self.get_mut(to)
            && next.fed_by.len() < MAX_NEIGHBOURS
        {
            next.fed_by.push(from);
        }
        self.settle(from);
    }

    /// A connection brought something good.
    pub(crate) fn is_good(&mut self, now: Instant, local: Local) {
        self.now = now;
        if let Some(hop) = self.get_mut(local) {
            hop.good_at = Some(now);
        }
    }

    /// Stops reading from a connection until `until`, because it exceeded the rate of its grant.
    pub(crate) fn owes(&mut self, local: Local, until: Instant) {
        let Some(hop) = self.get_mut(local) else { return };
        if let Some(before) = hop.owes_until.replace(until) {
            self.owing.remove(&(before, local));
        }
        self.owing.insert((until, local));
        self.settle(local);
    }

    /// When [`wake`](Self::wake) may do something.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.owing.first().map(|(at, _)| *at)
    }

    /// Resumes connections whose wait for their grant's rate is over.
    pub(crate) fn wake(&mut self, now: Instant) {
        self.now = now;
        while let Some((_, local)) = self.owing.first().copied().filter(|(at, _)| *at <= now) {
            self.owing.pop_first();
            if let Some(hop) = self.get_mut(local) {
                hop.owes_until = None;
            }
            self.settle(local);
        }
    }

    /// Whether a connection serves something.
    pub(crate) fn serves(&self, local: Local) -> bool {
        self.get(local).is_some_and(|hop| {
            let lives = hop.dialed_for.is_some_and(|by| self.get(by).is_some());
            // What is held back brings nothing, and is not to blame.
            lives || hop.paused || hop.good_at.is_some_and(|at| self.now.since(at) < IDLE_TIMEOUT)
        })
    }

    pub(crate) fn next_ask(&mut self) -> Option<TcpRequest> {
        self.asks.pop_front()
    }

    /// The number of TCP connections.
    pub(crate) fn len(&self) -> usize {
        self.all.iter().flatten().count()
    }
}
