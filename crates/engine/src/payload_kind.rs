//! Whether objects are bytes or only a length.

/// What objects are made of. Both ends of a connection must agree, or it closes with
/// [`close::PAYLOAD`](crate::connection::close::PAYLOAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Objects are bytes.
    #[default]
    Bytes,
    /// **For simulations.** Objects have a length and no bytes. A packet has its headers, and
    /// [`Transmit::phantom`](byway_wire::Transmit::phantom) tells how many object bytes it would
    /// have. Limits and rates count these bytes as if they were there. Real sockets cannot send
    /// such packets. [`Outgoing::next_read`](crate::data::Outgoing::next_read) asks for no bytes.
    /// [`Incoming::next_arrival`](crate::data::Incoming::next_arrival) tells which bytes arrived.
    /// Streams and datagrams still have bytes.
    Length,
}
