//! How a ticket becomes a session, and how the session is kept. One file has the keeper. The others
//! know who is dialled, why nobody answers, and when the receiver has forgotten a session.

pub(crate) mod connect_attempts;
pub(crate) mod dialers;
pub(crate) mod keeper;
pub(crate) mod name_lookup;
pub(crate) mod no_answer;
pub(crate) mod not_connected;
pub(crate) mod path_changes;
pub(crate) mod relay_outcomes;
pub(crate) mod restart_check;
pub(crate) mod tcp_dialer;
pub(crate) mod ticket_destinations;
pub(crate) mod uplink_watch;
pub(crate) mod uplinks;
