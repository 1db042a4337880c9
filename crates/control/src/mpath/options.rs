//! The parameters of mPath, with the presets of the paper and of production.

use crate::Shape;
use crate::bundle::INITIAL_PATH_LIMIT;

/// The division of one packet of growth among the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// At random, with the paper's P (eq. 1). Paths that have never met loss have precedence.
    Lot,
    /// In shares of a packet, to each path in proportion to its window: the mean of eq. 3, without
    /// variance.
    Shares,
}

/// The growth of all paths together per RTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increase {
    /// One packet, as NewReno.
    Reno,
    /// All windows together grow like those of one CUBIC flow (RFC 9438).
    Cubic(Shape),
}

/// The parts of mPath that the paper leaves open, or that production requires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MPathOptions {
    /// The largest share of a proxied path's window that moves to the direct path at a shared loss.
    pub alpha: f64,
    /// New proxied paths per packet of the direct window at a loss.
    pub beta: f64,
    /// The growth of all paths.
    pub increase: Increase,
    /// The share of its window that a path keeps after a loss.
    pub keep: f64,
    /// How growth is handed out.
    pub growth: Growth,
    /// Initial window of the direct path in packets.
    pub initial: f64,
    /// Initial window of a proxied path in packets.
    pub initial_proxied: f64,
    /// Whether proxied paths have a slow start too. If so, the slow start of every path ends when
    /// its delays rise (RFC 9406) or at a loss, not at a loss alone.
    pub start_everywhere: bool,
    /// Number of proxied paths that are requested from the start. More follow as long as they raise
    /// the throughput. With 0, paths are requested only after losses of the direct path, as in the
    /// paper.
    pub open_at_start: usize,
    /// Whether more relays are asked for once all are probed, as in the paper (section 2.1).
    /// Otherwise they are asked for once the controller wishes for a path and no relay can become
    /// one.
    pub ask_once_probed: bool,
    /// Whether a loss interval is that of the last packet lost, as in the paper. Otherwise it
    /// reaches from the first lost packet to its detection, for all losses of one round trip.
    pub last_lost: bool,
    /// The number of losses of a proxied path that must coincide with losses of the direct path
    /// before load moves. A loss that does not coincide lowers the count by one.
    pub evidence: u32,
    /// The number of timeouts in a row that drop a proxied path.
    pub patience: u32,
    /// Whether windows do not grow while the application limits sending (RFC 7661).
    pub validate: bool,
}

impl MPathOptions {
    /// Section 2.3 literally, with the alpha and beta that the paper found good.
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
        ask_once_probed: true,
        last_lost: true,
        evidence: 1,
        patience: 1,
        validate: false,
    };

    /// The preset of the class `normal`.
    pub const PRODUCTION: Self = Self {
        // At a long RTT, growth by one packet per RTT gets less than a CUBIC flow beside it.
        increase: Increase::Cubic(Shape::RFC9438),
        keep: Shape::RFC9438.beta,
        growth: Growth::Shares,
        initial: 10.0,
        initial_proxied: 4.0,
        // With its small part of the growth alone, a path would take minutes to reach its rate.
        start_everywhere: true,
        open_at_start: INITIAL_PATH_LIMIT,
        // Each named relay costs a probe. A transfer that gains nothing needs no more of them.
        ask_once_probed: false,
        last_lost: false,
        // One loss in a few dozen coincides with a loss of the direct path by chance.
        evidence: 2,
        // A single timeout is often a late ACK.
        patience: 2,
        validate: true,
        ..Self::LITERAL
    };
}
