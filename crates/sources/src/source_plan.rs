//! The settings of a source.

use crate::rate::RateRule;
use crate::record_input::Feed;
use crate::source_name::Name;
use byway_transfer::{Identity, Ticket};
use byway_wire::relay::Word;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Receiver;

/// The treatment of records that a source cannot send in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The input is held back.
    Back,
    /// The oldest are given up.
    GivenUp,
}

/// How to send records.
pub struct SourcePlan {
    /// The name under which the sink stores the records.
    pub name: Name,
    /// The key pair of this host.
    pub identity: Identity,
    /// The ticket of the sink.
    pub ticket: Ticket,
    /// The relay words to draw from. Empty: the ticket's relays.
    pub relays: Vec<Word>,
    /// New relay words for the same relays that are valid for longer. They are read when the source
    /// is woken.
    pub renewed: Receiver<Vec<Word>>,
    /// Number of relays to draw. `None`: two.
    pub paths: Option<usize>,
    /// Local addresses to connect from. From each, one path leads through each relay that this
    /// source uses. Without relays, one path leads from each to the sink, the host that writes the
    /// records. If the list is empty, the system chooses one address.
    pub bind: Vec<IpAddr>,
    /// How the rates of the paths are set.
    pub rule: RateRule,
    /// Bytes of records per second; may change at any time.
    pub demand: Arc<AtomicU64>,
    /// The treatment of records that the source cannot send in time.
    pub held: OverflowPolicy,
    /// The most bytes of records that the source keeps until the sink has written them. `None`: 8
    /// MiB. With `None` and `OverflowPolicy::Back`, the input is also held back once unsent records
    /// exceed 32 KiB and what `demand` sends in 250 ms, unless there is an outage.
    pub keep: Option<usize>,
    /// Whether the input begins with the first record that the sink ever got. The source then skips
    /// the records that the sink has.
    pub replay: bool,
    /// The records to send.
    pub feed: Feed,
}
