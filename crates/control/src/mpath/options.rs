//! The paper's mPath and the one that is fit for use, as values of one type.

use crate::Shape;
use crate::bundle::START;

/// How one packet of growth is handed out among the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// By lot, with the paper's P (eq. 1) and its precedence of paths that have never met loss.
    Lot,
    /// In shares of a packet, each path by its window: the mean of eq. 3 without its variance.
    Shares,
}

/// How much all paths together grow per RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increase {
    /// One packet, as NewReno.
    Reno,
    /// What CUBIC (RFC 9438) gives one flow of all their windows.
    Cubic(Shape),
}

/// What mPath leaves open or use in earnest wants otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MPathOptions {
    /// The largest share of a proxied path's window that moves to the direct path at a shared loss.
    pub alpha: f64,
    /// New proxied paths per packet of the direct window at a loss.
    pub beta: f64,
    /// How much all paths grow.
    pub increase: Increase,
    /// The share of a path's window that its loss leaves.
    pub keep: f64,
    /// How growth is handed out.
    pub growth: Growth,
    /// Initial window of the direct path in packets.
    pub initial: f64,
    /// Initial window of a proxied path in packets.
    pub initial_proxied: f64,
    /// Whether proxied paths have a slow start too. Then every slow start ends when delays rise
    /// (RFC 9406), not only at a loss.
    pub start_everywhere: bool,
    /// How many proxied paths are wished for from the start. More are if that gains something. 0:
    /// the paper's rule alone.
    pub open_at_start: usize,
    /// The number of losses of a proxied path in a row that must coincide with losses of the direct
    /// one before load moves.
    pub evidence: u32,
    /// The number of timeouts in a row that drop a proxied path.
    pub patience: u32,
    /// No growth while the application limits what is sent (RFC 7661).
    pub validate: bool,
}

impl MPathOptions {
    /// Section 2.3 word by word, with alpha and beta as found good there.
    pub const LITERAL: Self = Self {
        alpha: 0.5,
        beta: 0.25,
        increase: Increase::Reno,
        keep: 0.5,
        growth: Growth::Lot,
        initial: 2.0,
        initial_proxied: 1.0,
        start_everywhere: false,
        open_at_start: 0,
        evidence: 1,
        patience: 1,
        validate: false,
    };

    /// The class `normal`. A flow that grows by a packet per RTT loses beside the kernel's TCP,
    /// which is CUBIC, where the way is long. So all paths together grow as CUBIC does, and a loss
    /// leaves as much as there. A path that grows by its share of one packet per RTT from a window
    /// of one takes minutes to fill. So every path starts for itself. Two losses of disjoint paths
    /// fall together by chance every few dozen. So load moves at the second in a row. One timeout
    /// is often only a late ACK.
    pub const PRODUCTION: Self = Self {
        increase: Increase::Cubic(Shape::RFC9438),
        keep: Shape::RFC9438.beta,
        growth: Growth::Shares,
        initial: 10.0,
        initial_proxied: 4.0,
        start_everywhere: true,
        open_at_start: START,
        evidence: 2,
        patience: 2,
        validate: true,
        ..Self::LITERAL
    };
}
