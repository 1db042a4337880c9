//! The settings in `config.toml`: receivers with names, and values in place of defaults.
//!
//! ```toml
//! [peer.nas]
//! ticket = "byway2-…"
//!
//! [send]
//! bwlimit = "10Mbit"
//! ```
//!
//! | question | place |
//! |---|---|
//! | which files there are, and which are refused | `sources` |
//! | which part of TOML is read | `document` |
//! | which keys there are | `schema` |
//! | what both files say together | `config` |
//! | what a name may be | `peer_name` |
//! | when an argument is a name | `recipient` |
//! | how byway changes a file that people write | `editor`, `store` |

mod config;
mod document;
mod editor;
mod peer_name;
mod recipient;
mod schema;
mod sources;
mod store;

pub use config::{Config, Finding, FindingWeight, Peer, Setting};
#[cfg(feature = "pairing")]
pub(crate) use peer_name::nearest;
pub use peer_name::{PeerName, PeerNameError};
pub use recipient::PeerError;
pub use schema::{SETTING_KEYS, SettingKey};
pub use sources::ConfigSources;
pub use store::{PeerEdit, edit_peers};
