//! From a ticket to a live session, and how it is kept: who is dialled and how, why nobody answers,
//! when the receiver was restarted, and what is told of paths and relays.

pub(crate) mod connect_attempts;
pub(crate) mod dialers;
pub(crate) mod keeper;
pub(crate) mod no_answer;
pub(crate) mod path_changes;
pub(crate) mod relay_outcomes;
pub(crate) mod restart_check;
pub(crate) mod tcp_dialer;
pub(crate) mod unreached;
pub(crate) mod uplinks;
