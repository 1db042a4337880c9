//! Why a packet is left as it is and goes by the plain route.

use core::fmt;

/// A reason to pass a packet on unchanged. None is an error of the gateway's: it does not touch
/// packets that it does not understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum BypassReason {
    /// The packet is empty, or its first four bits name neither IPv4 nor IPv6.
    NotIp,
    /// The packet ends before its IP header, or before the length in that header.
    Truncated,
    /// The length of the IP header is below the minimum, or beyond the packet.
    IpLength,
    /// The checksum of the IPv4 header is wrong.
    IpChecksum,
    /// A fragment, also one that is all there is. See RFC 791, and RFC 8200, section 4.5.
    Fragment,
    /// An IPv6 packet that names no length: a jumbogram (RFC 2675).
    Jumbogram,
    /// The IPv6 packet has too many extension headers, or an unknown one.
    Extension,
    /// The packet has a source route: an option of IPv4, or a route of IPv6 that is not at its end.
    /// Its checksum covers another address.
    SourceRoute,
    /// AH or ESP (RFC 4302, RFC 4303). A change would break the signature, and the content may be
    /// encrypted.
    Secured,
    /// The packet is not TCP.
    NotTcp,
    /// The packet ends before its TCP header.
    TcpTruncated,
    /// A TCP header shorter than the shortest.
    TcpLength,
    /// The TCP checksum is wrong.
    TcpChecksum,
    /// A TCP option whose length is less than two or reaches beyond the header.
    TcpOptions,
    /// Flags that no TCP sends. They are SYN with FIN or RST, or none of `SYN`, `ACK`, `RST` and
    /// `FIN`.
    TcpFlags,
}

impl BypassReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::NotIp,
        Self::Truncated,
        Self::IpLength,
        Self::IpChecksum,
        Self::Fragment,
        Self::Jumbogram,
        Self::Extension,
        Self::SourceRoute,
        Self::Secured,
        Self::NotTcp,
        Self::TcpTruncated,
        Self::TcpLength,
        Self::TcpChecksum,
        Self::TcpOptions,
        Self::TcpFlags,
    ];

    /// The reason as a label of counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not_ip",
            Self::Truncated => "truncated",
            Self::IpLength => "ip_length",
            Self::IpChecksum => "ip_checksum",
            Self::Fragment => "fragment",
            Self::Jumbogram => "jumbogram",
            Self::Extension => "extension",
            Self::SourceRoute => "source_route",
            Self::Secured => "secured",
            Self::NotTcp => "not_tcp",
            Self::TcpTruncated => "tcp_truncated",
            Self::TcpLength => "tcp_length",
            Self::TcpChecksum => "tcp_checksum",
            Self::TcpOptions => "tcp_options",
            Self::TcpFlags => "tcp_flags",
        }
    }
}

impl fmt::Display for BypassReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of packets passed on, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BypassCounters([u64; BypassReason::ALL.len()]);

impl BypassCounters {
    /// Counts a packet that is not carried, by its reason.
    pub fn count(&mut self, reason: BypassReason) {
        if let Some(count) = self.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Packets passed on for `reason`.
    #[must_use]
    pub fn of(&self, reason: BypassReason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// Packets passed on for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_number_and_name() {
        let mut passed = BypassCounters::default();
        for (index, reason) in BypassReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert!(BypassReason::ALL.iter().filter(|other| other.name() == reason.name()).count() == 1);
            passed.count(reason);
            assert_eq!((passed.of(reason), passed.total()), (1, index as u64 + 1));
        }
    }
}
