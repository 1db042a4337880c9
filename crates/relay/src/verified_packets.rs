//! The verified fields of the last packet of each relay word (a permission to use the relay). The
//! next packet between the same hosts costs one MAC computation. Other packets cost three more
//! (cookie, consent, return tag). A result holds only within the same second.

use byway_wire::relay::{Consent, ReturnTag};
use core::net::SocketAddr;

/// Under which keys and when something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyTime {
    /// The relay's count of keys, which changes with each.
    pub(crate) generation: u32,
    /// The relay's clock, Unix seconds.
    pub(crate) unix: u64,
}

/// The fields of a packet on which its verification depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketClaims {
    pub(crate) moment: KeyTime,
    pub(crate) from: SocketAddr,
    /// The sender's cookie. 0: the sender did not prove that it receives at its address.
    pub(crate) cookie: u64,
    pub(crate) to: SocketAddr,
    pub(crate) consent: Consent,
}

/// The verified fields of a packet, and the return tag that the relay made for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VerifiedPacket {
    pub(crate) said: PacketClaims,
    /// `None`: the receiver may not answer, and no tag that he shows is good.
    pub(crate) return_tag: Option<ReturnTag>,
}

impl VerifiedPacket {
    /// Whether the last packet proved that the sender at `from` has this cookie.
    pub(crate) fn knows_sender(&self, moment: KeyTime, from: SocketAddr, cookie: u64) -> bool {
        self.said.moment == moment && self.said.cookie == cookie && self.said.from == from
    }

    /// Returns the return tag of an earlier packet with exactly these fields. `None`: there was no
    /// such packet.
    pub(crate) fn return_tag(&self, said: &PacketClaims) -> Option<Option<ReturnTag>> {
        (self.said == *said).then_some(self.return_tag)
    }

    /// Whether the relay gave this tag to `receiver`, for its answers to `sender`.
    pub(crate) fn gave(
        &self,
        moment: KeyTime,
        tag: &ReturnTag,
        sender: SocketAddr,
        receiver: SocketAddr,
    ) -> bool {
        self.return_tag.as_ref() == Some(tag)
            && self.said.moment == moment
            && self.said.from == sender
            && self.said.to == receiver
    }
}
