//! The key that identifies a TCP flow.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// Addresses and ports of a flow in one of its directions. The direction of the first SYN
/// identifies the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

impl FlowKey {
    /// The key of the opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = SocketAddr::new(self.source, self.source_port);
        write!(f, "{source} > {}", SocketAddr::new(self.destination, self.destination_port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn reads_from_sender_to_receiver() {
        let key = FlowKey {
            source: [10, 0, 0, 1].into(),
            destination: "2001:db8::1".parse().unwrap(),
            source_port: 4_000,
            destination_port: 873,
        };
        assert_eq!(key.to_string(), "10.0.0.1:4000 > [2001:db8::1]:873");
        assert_eq!(key.reversed().to_string(), "[2001:db8::1]:873 > 10.0.0.1:4000");
        assert_eq!(key.reversed().reversed(), key);
    }
}
