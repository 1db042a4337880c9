//! The source of a link's packets.

/// The link from which packets reach another link, over all chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feeder {
    /// No link alone leads here.
    Nobody,
    /// All packets of the link come from this link.
    Link(u32),
    /// A node, or several links.
    Many,
}
