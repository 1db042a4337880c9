//! The errors in the description of a network.

/// Why a network cannot be made, routed or found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TopologyError {
    /// The text cannot be a name.
    #[error("{name:?} is no name for a node: it needs at least one character, and neither '>' nor spaces")]
    BadName {
        /// The name that was given.
        name: String,
    },
    /// Two nodes have the same name.
    #[error("there are two nodes called {name}")]
    DuplicateNode {
        /// The name that was given.
        name: String,
    },
    /// The network has no node with this name.
    #[error("there is no node called {name}; there are {known}")]
    UnknownNode {
        /// The name that was asked for.
        name: String,
        /// The first few names of nodes.
        known: String,
    },
    /// Two edges join the same nodes. A plan must put another node into one of them.
    #[error("{a} and {b} are joined already: for a second way between them, put a node on it")]
    DuplicateEdge {
        /// The node at one end of the link.
        a: String,
        /// The node at the other end.
        b: String,
    },
    /// An edge from a node to itself.
    #[error("{name} cannot be joined to itself")]
    Loop {
        /// The node's name.
        name: String,
    },
    /// A rate of zero carries nothing; an outage is a partition.
    #[error("the link {from}>{to} has a rate of zero: leave it out, or give it a partition")]
    ZeroRate {
        /// The node at which the link begins.
        from: String,
        /// The node at which the link ends.
        to: String,
    },
    /// A direction between neighbours that are none.
    #[error("no link leads from {from} straight to {to}")]
    NoEdge {
        /// The node at which the edge or route begins.
        from: String,
        /// The node at which the edge or route ends.
        to: String,
    },
    /// No route leads to the node.
    #[error("no way leads from {from} to {to}")]
    Unreachable {
        /// The node at which the route begins.
        from: String,
        /// The node at which the route ends.
        to: String,
    },
    /// The link was not built into the simulation, or does not exist.
    #[error("the link {link} is not in this world: no such link, or it was built without it")]
    NotBuilt {
        /// The name of the link, as in "A>B".
        link: String,
    },
    /// A network that the registry does not know.
    #[error("there is no topology called {name}; there are {known}")]
    UnknownTopology {
        /// The name that was asked for.
        name: String,
        /// The names of all known networks.
        known: String,
    },
    /// A parameter that a network does not have.
    #[error("{topology} has no parameter {name}; it has {known}")]
    UnknownParameter {
        /// The network's name.
        topology: String,
        /// The name that was given.
        name: String,
        /// The names of all parameters of the network.
        known: String,
    },
    /// A value that a parameter cannot have.
    #[error("{topology}: {name} = {value}, but it must be {expected}")]
    BadParameter {
        /// The network's name.
        topology: String,
        /// The parameter's name.
        name: String,
        /// The value that was given.
        value: f64,
        /// The values that would do.
        expected: String,
    },
}
