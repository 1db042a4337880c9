//! Messages of `byway peer` and `byway config`.

use byway_transfer::settings::PeerName;
use std::path::Path;

pub const NO_PEER: &str = "no peer has a name: `byway peer add NAME @FILE` gives one";
pub const NO_MISTAKE: &str = "no mistake was found";

pub fn added(name: &PeerName, file: &Path) -> String {
    format!("`{name}:` stands for this ticket from now on: {} has it", file.display())
}

pub fn renamed(old: &PeerName, new: &PeerName) -> String {
    format!("`{old}` is called `{new}` from now on")
}

pub fn removed(name: &PeerName, file: &Path) -> String {
    format!("`{name}` is no longer in {}", file.display())
}
