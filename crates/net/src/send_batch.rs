//! Sends datagrams in as few calls as possible: each message of `sendmmsg` holds a run of
//! datagrams, which the kernel cuts apart (segmentation offload). ECN, DSCP and segment size are
//! socket options, because ancillary data would cost more.

use crate::socket::Socket;
use crate::statistics::Counters;
use crate::traffic_class::TrafficClass;
use byway_wire::SendErrorKind;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg, sockopt as options};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// The largest payload of one message in bytes: 65,535 less the IPv4 and UDP headers. A longer run
/// of datagrams is split over several messages. A longer single datagram is refused by the system,
/// and the error is reported to the protocol state machine.
const MAX_MESSAGE_BYTES: usize = 65_507;

/// The greatest number of messages in one `sendmmsg` call. A greater number would save little: with
/// 32 messages, the cost of the call itself is small beside the cost of its messages.
pub(crate) const MAX_MESSAGES: usize = 32;

/// Datagrams of equal size to one address. The last may be shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DatagramRun<'a> {
    pub remote: SocketAddr,
    pub mark: TrafficClass,
    pub segment: usize,
    pub bytes: &'a [u8],
}

/// The progress of a row of runs: `done` of them were sent completely, and `then` is the result of
/// the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchProgress {
    pub done: usize,
    pub then: SendResult,
}

/// The result for the first run that was not completely sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    /// All runs were sent.
    All,
    /// This number of bytes was sent. The rest must wait for the obstacle.
    Blocked(usize, Obstacle),
    /// The system refused the run. The rest of it is not sent.
    Failed(SendErrorKind),
}

/// The condition for which a blocked run waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The socket's buffer is full. The system reports when it has room.
    Socket,
    /// A device queue or the kernel's memory is full. The system does not report when this ends.
    Device,
}

/// The reaction to an error of a send call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendErrorAction {
    Wait(Obstacle),
    /// Likely segmentation offload that a device, a tunnel or a transform on the route cannot do.
    SendSingly,
    TellMachine(SendErrorKind),
}

fn answer(error: &io::Error, run: bool) -> SendErrorAction {
    use SendErrorKind::{Denied, TooLarge, Unreachable};
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => SendErrorAction::Wait(Obstacle::Socket),
        Some(Errno::NOBUFS | Errno::NOMEM) => SendErrorAction::Wait(Obstacle::Device),
        Some(Errno::IO | Errno::INVAL) if run => SendErrorAction::SendSingly,
        Some(Errno::MSGSIZE) => SendErrorAction::TellMachine(TooLarge),
        Some(Errno::PERM | Errno::ACCESS) => SendErrorAction::TellMachine(Denied),
        // ENETUNREACH, EHOSTUNREACH, ECONNREFUSED and ENETDOWN: the destination cannot be reached.
        // The protocol state machine gets `Unreachable` for unknown errors too, and if the host no
        // longer has the source address.
        _ => SendErrorAction::TellMachine(Unreachable),
    }
}

/// The messages of one call. They have the same mark and segment size.
#[derive(Default)]
struct Group<'a> {
    addresses: SmallVec<[SocketAddrAny; MAX_MESSAGES]>,
    contents: SmallVec<[&'a [u8]; MAX_MESSAGES]>,
    /// The segment size in bytes. 0: no message is divided.
    segment: usize,
    /// The longest message that must not be divided.
    longest: usize,
}

impl<'a> Group<'a> {
    /// Adds a message, if it can be sent in one call with the others. Returns whether it did.
    /// `segment`: the size of its datagrams.
    fn take(&mut self, remote: SocketAddr, segment: usize, contents: &'a [u8]) -> bool {
        if self.contents.len() == MAX_MESSAGES {
            return false;
        }
        if contents.len() > segment {
            if (self.segment != 0 && self.segment != segment) || self.longest > segment {
                return false;
            }
            self.segment = segment;
        } else {
            if self.segment != 0 && contents.len() > self.segment {
                return false;
            }
            self.longest = self.longest.max(contents.len());
        }
        self.addresses.push(remote.into());
        self.contents.push(contents);
        true
    }
}

impl Socket {
    /// Sends `runs`, the first of them from byte `start` on: the place where an earlier call was
    /// [`SendResult::Blocked`], or else 0.
    pub(crate) fn send(
        &mut self,
        runs: &[DatagramRun<'_>],
        start: usize,
        counters: &Counters,
    ) -> BatchProgress {
        let offload = self.max_segments;
        let progress = self.send_from(runs, start, counters);
        if progress.then == SendResult::Failed(SendErrorKind::TooLarge) {
            // Kernels before 6.14 refuse a run of too large datagrams as invalid. The offload is
            // not at fault, so it stays on.
            self.max_segments = offload;
        }
        if self.max_segments < offload {
            counters.offload_lost.add(1);
        }
        progress
    }

    fn send_from(&mut self, runs: &[DatagramRun<'_>], start: usize, counters: &Counters) -> BatchProgress {
        let (mut done, mut start) = (0, start);
        while let Some(first) = runs.get(done) {
            if !self.may_reach(first.remote) {
                return BatchProgress { done, then: SendResult::Failed(SendErrorKind::Unreachable) };
            }
            let group = self.gather(runs.get(done..).unwrap_or_default(), start);
            match self.send_group(first.mark, &group) {
                Ok(sent) => {
                    counters.send_calls.add(1);
                    for contents in group.contents.iter().take(sent) {
                        let Some(run) = runs.get(done) else { break };
                        count(contents.len(), run.segment, counters);
                        start += contents.len();
                        if start >= run.bytes.len() {
                            (done, start) = (done + 1, 0);
                        }
                    }
                }
                Err(error) => {
                    let run = group.contents.first().is_some_and(|contents| contents.len() > first.segment);
                    let then = match answer(&error, run) {
                        SendErrorAction::Wait(obstacle) => SendResult::Blocked(start, obstacle),
                        SendErrorAction::SendSingly => {
                            self.max_segments = 1;
                            continue;
                        }
                        SendErrorAction::TellMachine(kind) => SendResult::Failed(kind),
                    };
                    return BatchProgress { done, then };
                }
            }
        }
        BatchProgress { done, then: SendResult::All }
    }

    /// Whether the socket may send to this address. Otherwise the system reports an error that can
    /// also mean a failure of segmentation offload.
    fn may_reach(&self, remote: SocketAddr) -> bool {
        remote.port() != 0 && remote.is_ipv4() == self.address().is_ipv4()
    }

    /// Collects as many messages as one call can send.
    fn gather<'a>(&self, runs: &[DatagramRun<'a>], start: usize) -> Group<'a> {
        let mut group = Group::default();
        let mut from = start;
        let mark = runs.first().map(|run| run.mark);
        for run in runs {
            if Some(run.mark) != mark || !self.may_reach(run.remote) {
                break;
            }
            let segment = run.segment.max(1);
            let most = segment * (MAX_MESSAGE_BYTES / segment).clamp(1, self.max_segments);
            let mut rest = run.bytes.get(from..).unwrap_or_default();
            from = 0;
            loop {
                let (message, after) = rest.split_at(most.min(rest.len()));
                if !group.take(run.remote, segment, message) {
                    return group;
                }
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
        }
        group
    }

    fn send_group(&mut self, mark: TrafficClass, group: &Group<'_>) -> io::Result<usize> {
        self.set_mark(mark)?;
        if group.segment != 0 || (self.segment != 0 && group.longest > self.segment) {
            self.set_segment(group.segment)?;
        }
        let slices: SmallVec<[[IoSlice<'_>; 1]; MAX_MESSAGES]> =
            group.contents.iter().map(|contents| [IoSlice::new(contents)]).collect();
        let mut nothing: SmallVec<[SendAncillaryBuffer<'_, '_, '_>; MAX_MESSAGES]> =
            slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: SmallVec<[MMsgHdr<'_>; MAX_MESSAGES]> = group
            .addresses
            .iter()
            .zip(&slices)
            .zip(&mut nothing)
            .map(|((address, slices), nothing)| MMsgHdr::new_with_addr(address, slices, nothing))
            .collect();
        Ok(sendmmsg(&*self.io, &mut messages, SendFlags::DONTWAIT)?)
    }

    /// Sets the mark of packets sent from now on.
    fn set_mark(&mut self, mark: TrafficClass) -> io::Result<()> {
        if self.mark != Some(mark) {
            if self.address().is_ipv4() {
                options::set_ip_tos(&*self.io, mark.byte())?;
            } else {
                options::set_ipv6_tclass(&*self.io, u32::from(mark.byte()))?;
            }
            self.mark = Some(mark);
        }
        Ok(())
    }

    /// Has messages from now on cut into datagrams of this size; 0: not at all.
    fn set_segment(&mut self, segment: usize) -> io::Result<()> {
        if self.segment != segment {
            let option = i32::try_from(segment).unwrap_or(i32::MAX);
            setsockopt(&*self.io, sockopt::UdpGsoSegment, &option)?;
            self.segment = segment;
        }
        Ok(())
    }
}

fn count(bytes: usize, segment: usize, counters: &Counters) {
    let datagrams = bytes.div_ceil(segment.max(1)).max(1);
    counters.sent_datagrams.add(datagrams as u64);
    counters.sent_bytes.add(bytes as u64);
    if datagrams > 1 {
        counters.gso_runs.add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_wire::{Dscp, Ecn};
    use quinn_udp::{EcnCodepoint, UdpSockRef};
    use std::net::UdpSocket;
    use std::time::Duration;

    const PLAIN: TrafficClass = TrafficClass::new(Dscp::BestEffort, Ecn::NotEct);
    const CAPABLE: TrafficClass = TrafficClass::new(Dscp::BestEffort, Ecn::Ect0);

    fn pair() -> (Socket, UdpSocket, SocketAddr) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket2::SockRef::from(&receiver).set_recv_buffer_size(4 << 20).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let remote = receiver.local_addr().unwrap();
        (Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap(), receiver, remote)
    }

    /// Sends one run.
    fn send(socket: &mut Socket, run: &DatagramRun<'_>, start: usize, counters: &Counters) -> SendResult {
        socket.send(&[*run], start, counters).then
    }

    #[test]
    fn errors_ask_for_the_right_thing() {
        let of = |errno: Errno, run| answer(&io::Error::from(errno), run);
        assert_eq!(of(Errno::AGAIN, true), SendErrorAction::Wait(Obstacle::Socket));
        assert_eq!(of(Errno::NOBUFS, false), SendErrorAction::Wait(Obstacle::Device));
        assert_eq!(of(Errno::IO, true), SendErrorAction::SendSingly);
        assert_eq!(of(Errno::INVAL, true), SendErrorAction::SendSingly);
        assert_eq!(of(Errno::INVAL, false), SendErrorAction::TellMachine(SendErrorKind::Unreachable));
        assert_eq!(of(Errno::MSGSIZE, true), SendErrorAction::TellMachine(SendErrorKind::TooLarge));
        assert_eq!(of(Errno::PERM, false), SendErrorAction::TellMachine(SendErrorKind::Denied));
        for errno in [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::CONNREFUSED, Errno::ADDRNOTAVAIL] {
            assert_eq!(of(errno, false), SendErrorAction::TellMachine(SendErrorKind::Unreachable));
        }
    }

    #[test]
    fn a_run_arrives_as_its_datagrams() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let bytes: Vec<u8> = (0..2_500u32).map(|byte| byte as u8).collect();
        let run = DatagramRun { remote, mark: PLAIN, segment: 1_000, bytes: &bytes };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::All);

        let mut buffer = [0; 2_000];
        for expected in bytes.chunks(1_000) {
            let size = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..size], expected);
        }
        let statistics = counters.read();
        assert_eq!((statistics.sent_datagrams, statistics.sent_bytes), (3, 2_500));
    }

    #[test]
    fn runs_of_a_kind_leave_in_one_call_and_all_leave_in_order() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let bytes: Vec<u8> = (0..9_000_u32).map(|byte| (byte % 251) as u8).collect();
        // Each call as (first byte, bytes, segment, mark). A call ends where mark or segment size
        // changes, or a datagram would be cut.
        let kinds = [
            (0, 2_500, 1_000, CAPABLE),
            (2_500, 700, 700, CAPABLE),
            (3_200, 1_000, 1_000, CAPABLE),
            (4_200, 1_200, 1_200, CAPABLE),
            (5_400, 300, 300, PLAIN),
            (5_700, 1_500, 500, PLAIN),
            (7_200, 1_600, 800, PLAIN),
        ];
        let runs = kinds.map(|(from, size, segment, mark)| {
            let bytes = &bytes[from..from + size];
            DatagramRun { remote, mark, segment, bytes }
        });
        assert_eq!(
            socket.send(&runs, 0, &counters),
            BatchProgress { done: runs.len(), then: SendResult::All }
        );
        let mut buffer = [0; 2_000];
        for expected in runs.iter().flat_map(|run| run.bytes.chunks(run.segment)) {
            let size = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..size], expected);
        }
        let statistics = counters.read();
        assert_eq!((statistics.send_calls, statistics.gso_runs, statistics.sent_datagrams), (4, 3, 12));

        // The second of three cannot be sent: the first left, and the third is still to come.
        let nowhere = DatagramRun { remote: "127.0.0.1:0".parse().unwrap(), ..runs[0] };
        let failed = socket.send(&[runs[0], nowhere, runs[1]], 0, &counters);
        assert_eq!(failed, BatchProgress { done: 1, then: SendResult::Failed(SendErrorKind::Unreachable) });
    }

    #[test]
    fn the_mark_is_code_point_and_ecn_and_is_set_when_it_changes() {
        let counters = Counters::default();
        for (address, v6) in [("127.0.0.1:0", false), ("[::1]:0", true)] {
            let receiver = UdpSocket::bind(address).unwrap();
            let remote = receiver.local_addr().unwrap();
            let mut socket = Socket::bind(address.parse().unwrap()).unwrap();
            let calls = counters.read().send_calls;
            for (dscp, ecn, byte) in [
                (Dscp::BestEffort, Ecn::NotEct, 0),
                (Dscp::LowerEffort, Ecn::NotEct, 0b0000_0100),
                (Dscp::LowerEffort, Ecn::Ect0, 0b0000_0110),
                (Dscp::BestEffort, Ecn::Ect0, 0b0000_0010),
            ] {
                let run = DatagramRun {
                    remote,
                    mark: TrafficClass::new(dscp, ecn),
                    segment: 4,
                    bytes: b"alike, all",
                };
                assert_eq!(
                    socket.send(&[run, run], 0, &counters),
                    BatchProgress { done: 2, then: SendResult::All }
                );
                let set = match v6 {
                    false => u32::from(options::ip_tos(&*socket.io).unwrap()),
                    true => options::ipv6_tclass(&*socket.io).unwrap(),
                };
                assert_eq!(set, byte, "{dscp:?} {ecn:?}");
            }
            assert_eq!(counters.read().send_calls - calls, 4, "what is marked alike leaves in one call");
        }
    }

    #[test]
    fn a_run_goes_on_where_it_was_blocked() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let run = DatagramRun { remote, mark: PLAIN, segment: 4, bytes: b"lostkept" };
        assert_eq!(send(&mut socket, &run, 4, &counters), SendResult::All);
        let mut buffer = [0; 16];
        let size = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..size], b"kept");
        assert_eq!(counters.read().sent_datagrams, 1);
    }

    #[test]
    fn a_run_longer_than_a_call_takes_is_split() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let bytes = vec![7; 200 * 400];
        let run = DatagramRun { remote, mark: PLAIN, segment: 400, bytes: &bytes };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::All);
        let mut buffer = [0; 2_000];
        for _ in 0..200 {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 400);
        }
        assert_eq!(counters.read().offload_lost, 0);
    }

    #[test]
    fn offload_that_fails_at_run_time_is_given_up_and_nothing_is_lost() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        // The kernel segments no more than 128 datagrams and calls a longer run invalid
        // (UDP_MAX_SEGMENTS).
        socket.max_segments = 500;
        let bytes = vec![7; 500 * 100];
        let run = DatagramRun { remote, mark: CAPABLE, segment: 100, bytes: &bytes };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::All);

        let mut buffer = [0; 2_000];
        for _ in 0..500 {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 100);
        }
        let statistics = counters.read();
        assert_eq!(socket.max_segments(), 1);
        assert_eq!(
            (statistics.offload_lost, statistics.gso_runs, statistics.send_calls),
            (1, 0, 500_u64.div_ceil(MAX_MESSAGES as u64))
        );

        // Marks are still set: the loopback delivers before the send returns, so a receive call
        // need not wait.
        let other = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let run = DatagramRun { remote: other.address(), mark: CAPABLE, segment: 3, bytes: b"ecn" };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::All);
        let (mut buffer, mut meta) = ([0; 64], [quinn_udp::RecvMeta::default()]);
        let mut slices = [io::IoSliceMut::new(&mut buffer)];
        assert_eq!(other.state.recv(UdpSockRef::from(&*other.io), &mut slices, &mut meta).unwrap(), 1);
        assert_eq!(meta[0].ecn, Some(EcnCodepoint::Ect0));
    }

    #[test]
    fn too_large_is_told_and_costs_no_offload() {
        let (mut socket, _receiver, remote) = pair();
        let offload = socket.max_segments();
        let counters = Counters::default();
        // With its headers this is longer than an IPv4 packet can say.
        let bytes = vec![7; 65_520];
        let run = DatagramRun { remote, mark: PLAIN, segment: bytes.len(), bytes: &bytes };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::Failed(SendErrorKind::TooLarge));
        assert_eq!(socket.max_segments(), offload);
    }

    #[test]
    fn no_way_is_told_without_asking_the_system() {
        let (mut socket, _receiver, _) = pair();
        let offload = socket.max_segments();
        let counters = Counters::default();
        for nowhere in ["127.0.0.1:0", "[::1]:9"] {
            let run = DatagramRun {
                remote: nowhere.parse().unwrap(),
                mark: PLAIN,
                segment: 1,
                bytes: b"to nobody",
            };
            assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::Failed(SendErrorKind::Unreachable));
        }
        assert_eq!(socket.max_segments(), offload);
    }

    #[test]
    fn an_empty_datagram_is_a_datagram() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let run = DatagramRun { remote, mark: PLAIN, segment: 0, bytes: b"" };
        assert_eq!(send(&mut socket, &run, 0, &counters), SendResult::All);
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 0);
        assert_eq!(counters.read().sent_datagrams, 1);
    }
}
