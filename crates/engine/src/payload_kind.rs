//! Whether objects are bytes or only a length.

/// The content of objects. Both ends of a connection must agree, or it closes with
/// [`close::PAYLOAD_CODE`](crate::connection::close::PAYLOAD_CODE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Objects are bytes.
    #[default]
    Bytes,
    /// **For simulations:** objects have a length and no bytes. Real sockets cannot send such
    /// packets. [`Transmit::phantom`](byway_wire::Transmit::phantom) counts the bytes that a packet
    /// leaves out; limits and rates include these bytes.
    /// [`Incoming::next_arrival`](crate::data::Incoming::next_arrival) tells which ranges of an
    /// object arrived. Streams and datagrams have bytes.
    Length,
}
