//! Rules of others by which a session over many paths chooses the path of the next packet. Only
//! studies use them: the feature `studies` has them, and programs are built without it.
//!
//! A rule is a pure function of facts: the paths, the send window, and the data that wait. What it
//! remembers from packet to packet is its own small state.
//!
//! | module | rule | source |
//! |---|---|---|
//! | `min_rtt` | the path with the least RTT of those with room | the default of MPTCP in Linux |
//! | `blest` | leaves a slow path idle if its packet would block the send window | Ferlin et al., IFIP Networking 2016, as MPTCP 0.95 for Linux has it |
//! | `ecf` | leaves a slow path idle if the fast one completes earlier | Lim et al., CoNEXT 2017, as MPTCP 0.95 for Linux has it |
//! | `weighted` | turns in proportion to window over RTT | stride scheduling, Waldspurger and Weihl 1995 |

mod blest;
mod chooser;
mod ecf;
mod facts;
mod min_rtt;
mod weighted;

pub(crate) use chooser::Chooser;
pub use chooser::PathRule;
pub(crate) use facts::{Choice, PathFacts, SessionFacts};
