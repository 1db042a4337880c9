//! Whether objects are bytes or only a length.

/// What objects are made of. Both ends of a connection must agree, or it closes with
/// [`close::PAYLOAD`](crate::connection::close::PAYLOAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Objects are bytes.
    #[default]
    Bytes,
    /// **For simulations.** Objects have a length and no bytes. A packet leaves out the bytes of
    /// objects, and [`Transmit::phantom`](byway_wire::Transmit::phantom) is their number. Limits
    /// and rates count these bytes as if they were sent. Real sockets cannot send such packets.
    ///
    /// [`Outgoing::next_read`](crate::data::Outgoing::next_read) asks for no bytes, and
    /// [`Incoming::next_arrival`](crate::data::Incoming::next_arrival) tells which bytes arrived.
    /// Streams and datagrams still have bytes.
    Length,
}
