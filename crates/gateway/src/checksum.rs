//! Who is to make a packet's checksum right. How it is computed is in [`byway_wire::checksum`].

/// The checksum of a packet as it stands in its TCP header, and who is to make it right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Complete, and to be checked.
    Full,
    /// Complete, and checked by whoever handed the packet in (`VIRTIO_NET_HDR_F_DATA_VALID`).
    Checked,
    /// Only the sum over the pseudo-header, not inverted: the rest is left to whoever sends the packet on
    /// (`VIRTIO_NET_HDR_F_NEEDS_CSUM`). Nothing can be checked, and no change of TCP's header needs an update.
    Partial,
}
