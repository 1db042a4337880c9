//! Whether objects are bytes or only a length.

/// What objects are made of. Both ends of a connection must agree, or it closes with
/// [`close::PAYLOAD`](crate::connection::close::PAYLOAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Objects are bytes.
    #[default]
    Bytes,
    /// **For simulations.** Objects are only a length. Packets have their headers, and the bytes of
    /// objects are only counted, as [`Transmit::phantom`](byway_wire::Transmit::phantom), which
    /// sockets do not carry. All limits and rates count as if the bytes were there. The application
    /// is not asked to read them ([`Outgoing::next_read`](crate::data::Outgoing::next_read)).
    /// [`Incoming::next_arrival`](crate::data::Incoming::next_arrival) tells which of them arrived.
    /// Streams and datagrams are still bytes.
    Length,
}
