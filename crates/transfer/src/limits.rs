//! Limits on what a transfer uses: which hold at which time, how they are kept, and what memory
//! they need.
//!
//! | question | place |
//! |---|---|
//! | what `--bwlimit` says, and what holds at which time of day | [`rate_timetable`], [`time_of_day`] |
//! | what the local clock shows | [`local_clock`] |
//! | who may set other limits while a transfer runs | `limit_choice` |
//! | what a sender sends at most | `send_limit` |
//! | what a receiver takes at most | `receive_limit`, `memory_limit` |

pub(crate) mod limit_choice;
pub mod local_clock;
pub(crate) mod memory_limit;
pub mod rate_timetable;
pub(crate) mod receive_limit;
pub(crate) mod send_limit;
pub mod time_of_day;
