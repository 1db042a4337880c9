//! Why a relay that was greeted is of no use.

use byway_wire::relay::Reason;

/// Why a greeting failed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    /// The relay does not answer.
    Silent,
    /// The relay refuses this side, for this reason.
    Refused(Reason),
    /// The peer does not answer the offer.
    NotTaken,
}
