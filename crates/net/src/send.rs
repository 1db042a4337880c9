//! Out: a run of datagrams goes to the system in as few calls as it allows, and what the system answers is sorted into
//! what to do about it.

use crate::socket::{Socket, state};
use crate::statistics::Counters;
use byway_wire::{Ecn, SendErrorKind};
use quinn_udp::{EcnCodepoint, UdpSockRef};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;

/// The largest payload of one call, one datagram or many: 65,535 bytes less IPv4 and UDP headers. A single datagram may
/// be larger; then the system refuses it, and the machine learns so.
const MAX_CALL_BYTES: usize = 65_507;

/// A run of datagrams of equal size, the last perhaps shorter, to one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub remote: SocketAddr,
    pub ecn: Ecn,
    pub segment: usize,
    pub bytes: &'a [u8],
}

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All of it left.
    All,
    /// The first so many bytes left; the rest has to wait.
    Blocked(usize, Obstacle),
    /// The system refused. What has not left yet will not.
    Failed(SendErrorKind),
}

/// What a blocked run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The socket's buffer is full; the system says when it has room.
    Socket,
    /// A device queue or the kernel's memory is full; nobody says when that ends.
    Device,
}

/// What an error of a send asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Wait(Obstacle),
    /// Likely segmentation offload that a device, a tunnel or a transform on the route cannot do.
    SendSingly,
    TellMachine(SendErrorKind),
}

fn answer(error: &io::Error, run: bool) -> Answer {
    use SendErrorKind::{Denied, TooLarge, Unreachable};
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => Answer::Wait(Obstacle::Socket),
        Some(Errno::NOBUFS | Errno::NOMEM) => Answer::Wait(Obstacle::Device),
        Some(Errno::IO | Errno::INVAL) if run => Answer::SendSingly,
        Some(Errno::MSGSIZE) => Answer::TellMachine(TooLarge),
        Some(Errno::PERM | Errno::ACCESS) => Answer::TellMachine(Denied),
        // ENETUNREACH, EHOSTUNREACH, ECONNREFUSED, ENETDOWN, an address that went away, and what nobody has met yet:
        // from here there is no way there.
        _ => Answer::TellMachine(Unreachable),
    }
}

impl Socket {
    /// Sends `run` from byte `start` on, which is where an earlier call was [`Sent::Blocked`], else 0.
    pub(crate) fn send(&mut self, run: &Run<'_>, start: usize, counters: &Counters) -> Sent {
        // The system would call these invalid, which is also what it says of offload that does not work.
        if run.remote.port() == 0 || run.remote.is_ipv4() != self.address().is_ipv4() {
            return Sent::Failed(SendErrorKind::Unreachable);
        }
        let offload = self.max_segments;
        let outcome = self.send_from(run, start, counters);
        if outcome == Sent::Failed(SendErrorKind::TooLarge) {
            // Kernels before 6.14 call a run of too large datagrams invalid: that was not the offload's fault.
            self.max_segments = offload;
        }
        if self.max_segments < offload {
            counters.offload_lost.add(1);
        }
        outcome
    }

    fn send_from(&mut self, run: &Run<'_>, start: usize, counters: &Counters) -> Sent {
        let segment = run.segment.max(1);
        let mut sent = start;
        loop {
            let rest = run.bytes.get(sent..).unwrap_or_default();
            let most = segment.saturating_mul(self.segments_per_call(segment));
            let chunk = rest.get(..most).unwrap_or(rest);
            let Err(error) = self.send_call(run, segment, chunk) else {
                count(chunk.len(), segment, counters);
                sent += chunk.len();
                if sent >= run.bytes.len() {
                    return Sent::All;
                }
                continue;
            };
            self.keep_marking(&error);
            match answer(&error, chunk.len() > segment) {
                Answer::Wait(obstacle) => return Sent::Blocked(sent, obstacle),
                Answer::SendSingly => self.max_segments = 1,
                Answer::TellMachine(kind) => return Sent::Failed(kind),
            }
        }
    }

    fn segments_per_call(&self, segment: usize) -> usize {
        (MAX_CALL_BYTES / segment).clamp(1, self.max_segments)
    }

    fn send_call(&self, run: &Run<'_>, segment: usize, contents: &[u8]) -> io::Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: run.remote,
            ecn: codepoint(run.ecn),
            contents,
            segment_size: (contents.len() > segment).then_some(segment),
            src_ip: None,
        };
        self.state.try_send(UdpSockRef::from(&*self.io), &transmit)
    }

    /// quinn-udp takes "invalid" as a sign that the kernel cannot set ECN marks, and stops setting them for good. No
    /// kernel that has `UDP_SEGMENT` is that old; a fresh state has no such memory.
    fn keep_marking(&mut self, error: &io::Error) {
        if let Some(Errno::IO | Errno::INVAL) = Errno::from_io_error(error)
            && let Ok(fresh) = state(&self.io)
        {
            self.state = fresh;
        }
    }
}

fn count(bytes: usize, segment: usize, counters: &Counters) {
    let datagrams = bytes.div_ceil(segment).max(1);
    counters.send_calls.add(1);
    counters.sent_datagrams.add(datagrams as u64);
    counters.sent_bytes.add(bytes as u64);
    if datagrams > 1 {
        counters.gso_runs.add(1);
    }
}

fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    fn pair() -> (Socket, UdpSocket, SocketAddr) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket2::SockRef::from(&receiver).set_recv_buffer_size(4 << 20).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let remote = receiver.local_addr().unwrap();
        (Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap(), receiver, remote)
    }

    #[test]
    fn errors_ask_for_the_right_thing() {
        let of = |errno: Errno, run| answer(&io::Error::from(errno), run);
        assert_eq!(of(Errno::AGAIN, true), Answer::Wait(Obstacle::Socket));
        assert_eq!(of(Errno::NOBUFS, false), Answer::Wait(Obstacle::Device));
        assert_eq!(of(Errno::IO, true), Answer::SendSingly);
        assert_eq!(of(Errno::INVAL, true), Answer::SendSingly);
        assert_eq!(of(Errno::INVAL, false), Answer::TellMachine(SendErrorKind::Unreachable));
        assert_eq!(of(Errno::MSGSIZE, true), Answer::TellMachine(SendErrorKind::TooLarge));
        assert_eq!(of(Errno::PERM, false), Answer::TellMachine(SendErrorKind::Denied));
        for errno in [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::CONNREFUSED, Errno::ADDRNOTAVAIL] {
            assert_eq!(of(errno, false), Answer::TellMachine(SendErrorKind::Unreachable));
        }
    }

    #[test]
    fn a_run_arrives_as_its_datagrams() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let bytes: Vec<u8> = (0..2_500u32).map(|byte| byte as u8).collect();
        let run = Run { remote, ecn: Ecn::NotEct, segment: 1_000, bytes: &bytes };
        assert_eq!(socket.send(&run, 0, &counters), Sent::All);

        let mut buffer = [0; 2_000];
        for expected in bytes.chunks(1_000) {
            let size = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..size], expected);
        }
        let statistics = counters.read();
        assert_eq!((statistics.sent_datagrams, statistics.sent_bytes), (3, 2_500));
    }

    #[test]
    fn a_run_goes_on_where_it_was_blocked() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let run = Run { remote, ecn: Ecn::NotEct, segment: 4, bytes: b"lostkept" };
        assert_eq!(socket.send(&run, 4, &counters), Sent::All);
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
        let run = Run { remote, ecn: Ecn::NotEct, segment: 400, bytes: &bytes };
        assert_eq!(socket.send(&run, 0, &counters), Sent::All);
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
        // The kernel segments no more than 128 datagrams and calls a longer run invalid (UDP_MAX_SEGMENTS).
        socket.max_segments = 500;
        let bytes = vec![7; 500 * 100];
        let run = Run { remote, ecn: Ecn::Ect0, segment: 100, bytes: &bytes };
        assert_eq!(socket.send(&run, 0, &counters), Sent::All);

        let mut buffer = [0; 2_000];
        for _ in 0..500 {
            assert_eq!(receiver.recv(&mut buffer).unwrap(), 100);
        }
        let statistics = counters.read();
        assert_eq!(socket.max_segments(), 1);
        assert_eq!((statistics.offload_lost, statistics.gso_runs, statistics.send_calls), (1, 0, 500));

        // Marks are still set: the loopback delivers before the send returns, so a receive call need not wait.
        let other = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let run = Run { remote: other.address(), ecn: Ecn::Ect0, segment: 3, bytes: b"ecn" };
        assert_eq!(socket.send(&run, 0, &counters), Sent::All);
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
        let run = Run { remote, ecn: Ecn::NotEct, segment: bytes.len(), bytes: &bytes };
        assert_eq!(socket.send(&run, 0, &counters), Sent::Failed(SendErrorKind::TooLarge));
        assert_eq!(socket.max_segments(), offload);
    }

    #[test]
    fn no_way_is_told_without_asking_the_system() {
        let (mut socket, _receiver, _) = pair();
        let offload = socket.max_segments();
        let counters = Counters::default();
        for nowhere in ["127.0.0.1:0", "[::1]:9"] {
            let run =
                Run { remote: nowhere.parse().unwrap(), ecn: Ecn::NotEct, segment: 1, bytes: b"to nobody" };
            assert_eq!(socket.send(&run, 0, &counters), Sent::Failed(SendErrorKind::Unreachable));
        }
        assert_eq!(socket.max_segments(), offload);
    }

    #[test]
    fn an_empty_datagram_is_a_datagram() {
        let (mut socket, receiver, remote) = pair();
        let counters = Counters::default();
        let run = Run { remote, ecn: Ecn::NotEct, segment: 0, bytes: b"" };
        assert_eq!(socket.send(&run, 0, &counters), Sent::All);
        assert_eq!(receiver.recv(&mut [0; 8]).unwrap(), 0);
        assert_eq!(counters.read().sent_datagrams, 1);
    }
}
