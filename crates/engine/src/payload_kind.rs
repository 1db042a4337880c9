//! Whether objects are bytes or only a length.

/// What objects are made of. Both ends of a connection must agree, or it closes with
/// [`close::PAYLOAD`](crate::connection::close::PAYLOAD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Objects are bytes.
    #[default]
    Bytes,
    /// **For simulations.** Only a length: packets have their headers, and the bytes of objects are
    /// [`Transmit::phantom`](byway_wire::Transmit::phantom), which sockets do not carry. Everything
    /// counts as if the bytes were there. Nobody is asked to read them
    /// ([`Outgoing::next_read`](crate::data::Outgoing::next_read)), and what arrives is told by
    /// [`Incoming::next_arrival`](crate::data::Incoming::next_arrival). Streams and datagrams are
    /// bytes all the same.
    Length,
}
