//! Why a world does not run.

use byway_control::ChoiceError;
use byway_sim::topology::TopologyError;

/// Why a variant does not run, or did not run to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The network cannot be made, or has no route between two hosts.
    #[error(transparent)]
    Network(#[from] TopologyError),
    /// A new link leads one way only.
    #[error("a link leads from {from} to {to}, but none back: without `one_way`, it is one each way")]
    OneWay {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
    },
    /// Fewer nodes than a plan wants to choose among.
    #[error(
        "{transfer}: {wanted} nodes that begin with {prefix:?} are wanted, but only {there} can be chosen"
    )]
    TooFew {
        /// The transfer's name.
        transfer: String,
        /// How their names should begin.
        prefix: String,
        /// Nodes with this prefix that the plan asks for.
        wanted: usize,
        /// Nodes with this prefix that there are.
        there: usize,
    },
    /// A way through one of its own ends, or twice through the same node.
    #[error("{transfer}: a way leads through {node}, which is one of its ends or stands there already")]
    OwnRelay {
        /// The transfer's name.
        transfer: String,
        /// The node's name.
        node: String,
    },
    /// A relay is to crash where there is none.
    #[error("at {node} there is no relay that could go down or come up: no session goes through there")]
    NoRelay {
        /// The node's name.
        node: String,
    },
    /// Something is to happen to a transfer, or a registry, that is not there.
    #[error("{what}")]
    NothingThere {
        /// The missing thing.
        what: String,
    },
    /// A host that lends has several lines.
    #[error("at {node} there is a relay that lends the line of its host, and that has not just one")]
    Lines {
        /// The node's name.
        node: String,
    },
    /// A mistake in the plan's choice of a controller.
    #[error("{of}: {error}")]
    Congestion {
        /// The transfer's name.
        of: String,
        /// The mistake in the choice.
        error: ChoiceError,
    },
    /// A server of requests has fewer controllers to choose from.
    #[error("{requests}: servers run newreno or cubic without options, not {name}")]
    Server {
        /// The name of the requests.
        requests: String,
        /// The controller that was asked for.
        name: String,
    },
    /// The carrier does not support something in the plan.
    #[error("{transfer}: {why}")]
    Carrier {
        /// The transfer's name.
        transfer: String,
        /// The part that is not supported.
        why: &'static str,
    },
    /// The world could need more memory than the plan allows.
    #[error("this may need {needed} MB of memory, and the plan allows {allowed} MB (`memory`)")]
    Memory {
        /// Megabytes that the run would need, rounded up.
        needed: u64,
        /// Megabytes that a run may use.
        allowed: u64,
    },
    /// The packets could not be written.
    #[error("cannot write the packets: {0}")]
    Capture(String),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}
