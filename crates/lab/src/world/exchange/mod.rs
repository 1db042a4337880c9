//! An exchange: two hosts that live as hosts do move objects, streams and datagrams over byway's
//! engine. A host's process may end at any time. What its disk holds stays.
//!
//! | module | what it holds |
//! |---|---|
//! | `content` | the bytes of objects and streams, so that a mistake shows |
//! | `disk` | what a host's disk holds, and the notes of the whole run |
//! | `conversation` | what an application does with one session |
//! | `host` | either host: an endpoint, its application, and its sessions |
//! | `caller` | the side that begins sessions, until all is done |
//! | `dialing_endpoint` | an endpoint that can dial TCP |
//! | `relay_ticket` | what a ticket says of relays |
//! | `dialing` | when a host tries TCP |
//! | `hosts` | both hosts in a world: how they start, and what happens to them |

mod caller;
mod content;
mod conversation;
mod dialing;
mod dialing_endpoint;
mod disk;
mod host;
mod hosts;
mod relay_ticket;

pub(super) use caller::CallerTask;
pub(super) use hosts::{ExchangeHosts, ExchangeSites};
