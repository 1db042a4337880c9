//! Which party makes a packet's checksum right. How it is computed is in [`byway_wire::checksum`].

/// The state of the checksum in a packet's TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumState {
    /// Complete, and to be checked.
    Full,
    /// The checksum is complete, and the caller has checked it (`VIRTIO_NET_HDR_F_DATA_VALID`).
    Checked,
    /// The checksum field holds only the sum over the pseudo-header
    /// (`VIRTIO_NET_HDR_F_NEEDS_CSUM`). The checksum is completed when the packet is sent on.
    /// Before that it cannot be verified, and it stays the same when the TCP header is rewritten.
    Partial,
}
