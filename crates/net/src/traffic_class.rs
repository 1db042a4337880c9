//! The byte of an IP header that holds DSCP and ECN.

use byway_wire::{Dscp, Ecn, Transmit};

/// The byte of an IP header for the treatment of the packet: type of service, or traffic class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrafficClass(u8);

impl TrafficClass {
    /// The traffic class of a run that a machine wrote.
    pub(crate) const fn of(transmit: &Transmit) -> Self {
        Self::new(transmit.dscp, transmit.ecn)
    }

    /// The whole byte.
    pub(crate) const fn byte(self) -> u8 {
        self.0
    }

    /// Returns the DSCP code point at its place in the byte, without ECN.
    pub(crate) fn code_point(self) -> u32 {
        u32::from(self.0 & !3)
    }

    /// The upper six bits are the code point (RFC 2474). The lower two are ECN (RFC 3168).
    pub(crate) const fn new(dscp: Dscp, ecn: Ecn) -> Self {
        let ecn = match ecn {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        };
        Self(dscp.code_point() << 2 | ecn)
    }
}
