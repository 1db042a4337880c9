//! The ICMP errors that a host, or a router on the way, returns for a datagram. The system reports
//! ICMP errors only on connected sockets. A session's sockets are not connected, so a probe has a
//! socket of its own.

use rustix::io::Errno;
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu, ipv6_mtu, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The network's or the host's error for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// No program has the port, or a firewall reports so.
    PortUnreachable,
    /// The destination's network does not have the host, or a firewall reports so.
    HostUnreachable,
    /// There is no route to the network.
    NetworkUnreachable,
    /// A firewall forbids sending: this host's, or one that reports so.
    Forbidden,
    /// The datagram is too large for a link of its route. The value is the link's MTU in bytes,
    /// headers included, if it is known.
    TooNarrow(Option<u32>),
    /// Any other error.
    Other,
}

/// A socket for datagrams to one address. It receives ICMP errors about them.
#[derive(Debug)]
pub struct IcmpProbe {
    socket: UdpSocket,
}

impl IcmpProbe {
    /// Prepares a probe to `to`, from the address `from` or one that the system chooses. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// There is no route, the source address cannot be used, or there is no socket.
    pub fn new(to: SocketAddr, from: Option<IpAddr>) -> Result<Self, IcmpError> {
        Self::open(to, from).map_err(|error| echo(&error, None))
    }

    fn open(to: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(from.unwrap_or(any), 0))?;
        socket.set_nonblocking(true)?;
        if to.is_ipv4() {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DO)?;
        } else {
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DO)?;
        }
        socket.connect(to)?;
        Ok(Self { socket })
    }

    /// Sends a datagram that a byway peer ignores. Returns the system's immediate error.
    pub fn knock(&mut self, bytes: &[u8]) -> Option<IcmpError> {
        // What is full now says nothing about the way.
        let refused = self.socket.send(bytes).err().filter(|it| it.kind() != io::ErrorKind::WouldBlock);
        refused.map(|error| self.echo(&error))
    }

    /// The error that came back for earlier datagrams. `None`: there is none.
    pub fn listen(&mut self) -> Option<IcmpError> {
        let error = self.socket.take_error().ok()??;
        Some(self.echo(&error))
    }

    fn echo(&self, error: &io::Error) -> IcmpError {
        let is_ipv4 = self.socket.peer_addr().is_ok_and(|peer| peer.is_ipv4());
        echo(error, if is_ipv4 { ip_mtu(&self.socket).ok() } else { ipv6_mtu(&self.socket).ok() })
    }
}

fn echo(error: &io::Error, mtu: Option<u32>) -> IcmpError {
    match Errno::from_io_error(error) {
        Some(Errno::CONNREFUSED) => IcmpError::PortUnreachable,
        Some(Errno::HOSTUNREACH) => IcmpError::HostUnreachable,
        Some(Errno::NETUNREACH | Errno::NETDOWN | Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            IcmpError::NetworkUnreachable
        }
        Some(Errno::PERM | Errno::ACCESS) => IcmpError::Forbidden,
        Some(Errno::MSGSIZE) => IcmpError::TooNarrow(mtu),
        _ => IcmpError::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// Waits for an ICMP error.
    fn heard(knock: &mut IcmpProbe) -> Option<IcmpError> {
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        // Errors are told whatever is asked for.
        poll(&mut [PollFd::new(&knock.socket, PollFlags::empty())], Some(&patience)).unwrap();
        knock.listen()
    }

    #[test]
    fn a_port_that_nobody_has_is_told() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let mut knock = IcmpProbe::new(address, None).unwrap();
        assert_eq!(knock.knock(&[0; 1200]), None);
        let mut buffer = [1; 2000];
        assert_eq!(taken.recv(&mut buffer).unwrap(), 1200);
        assert_eq!(knock.listen(), None, "whoever has it says nothing");
        drop(taken);
        assert_eq!(knock.knock(&[0; 1200]), None);
        assert_eq!(heard(&mut knock), Some(IcmpError::PortUnreachable));
    }

    #[test]
    fn what_the_system_says_at_once_is_told() {
        let to = "127.0.0.1:9".parse().unwrap();
        assert_eq!(
            IcmpProbe::new(to, Some("203.0.113.7".parse().unwrap())).err(),
            Some(IcmpError::NetworkUnreachable)
        );
        let mut knock = IcmpProbe::new(to, None).unwrap();
        assert!(matches!(knock.knock(&[0; 65_507 + 1]), Some(IcmpError::TooNarrow(Some(1_280..)))));
    }
}
