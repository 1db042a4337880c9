//! Which party makes a packet's checksum right. How it is computed is in [`byway_wire::checksum`].

/// The checksum of a packet as it stands in its TCP header, and which party makes it right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumState {
    /// Complete, and to be checked.
    Full,
    /// Complete, and checked by whoever handed the packet in (`VIRTIO_NET_HDR_F_DATA_VALID`).
    Checked,
    /// Only the sum over the pseudo-header, not inverted (`VIRTIO_NET_HDR_F_NEEDS_CSUM`). The party
    /// that sends the packet on completes the checksum. Until then it cannot be checked, and
    /// changes of the TCP header do not have to update it.
    Partial,
}
