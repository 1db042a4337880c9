//! A NAT in front of a socket that lets in only what answers.

use byway_wire::{Duration, Instant};
use core::net::SocketAddr;
use std::collections::BTreeMap;

/// Lets in packets only from addresses and ports to which the socket sent lately (RFC 4787, section
/// 5: address and port-dependent filtering).
#[derive(Debug)]
pub(super) struct NatFilter {
    /// Time after which the NAT forgets that the socket sent to an address.
    lifetime: Duration,
    /// When the socket sent to each address last.
    sent: BTreeMap<SocketAddr, Instant>,
}

impl NatFilter {
    pub const fn new(lifetime: Duration) -> Self {
        Self { lifetime, sent: BTreeMap::new() }
    }

    /// The socket sends to an address.
    pub fn on_sent(&mut self, now: Instant, to: SocketAddr) {
        self.sent.insert(to, now);
    }

    /// Whether a packet from this address gets in.
    pub fn admits(&self, now: Instant, from: SocketAddr) -> bool {
        self.sent.get(&from).is_some_and(|at| now <= *at + self.lifetime)
    }
}
