//! Which name the other host gets in the user's file.

use super::introduction::Introduction;
use crate::settings::{Config, PeerEdit, PeerError, PeerName, edit_peers};
use std::iter;
use std::path::PathBuf;

/// The name for a host whose own name is not valid for a peer.
const NAMELESS_PEER: &str = "peer";
/// Names that are tried for a host whose name is taken: `nas`, `nas-2`, and so on.
const MAX_NAME_TRIES: u32 = 100;
/// The most letters that are kept of a name when a number is added.
const MAX_STEM_LEN: usize = 60;

/// Keeps the other host under the chosen name or its own, or one with a number behind it. A host
/// that is there already keeps its name, unless another is chosen. Returns the name, and the file
/// that has it.
///
/// # Errors
/// The file cannot be written, or all these names are taken.
pub fn keep_peer(
    config: &Config,
    chosen: Option<&PeerName>,
    told: &Introduction,
) -> Result<(PeerName, PathBuf), PeerError> {
    if let Some(known) = known(config, chosen, told)? {
        return Ok(known);
    }
    let first = chosen.or(told.name.as_ref()).map_or(NAMELESS_PEER, PeerName::as_str);
    let stem = first.get(..MAX_STEM_LEN).unwrap_or(first);
    let others = (2..=MAX_NAME_TRIES).map(|number| format!("{stem}-{number}"));
    let mut taken = Err(PeerError::NoFile);
    for name in iter::once(first.to_owned()).chain(others).filter_map(|name| name.parse().ok()) {
        // What the other host calls itself never takes the place of a peer of the system's file,
        // nor that of a sender who is allowed by a name.
        if chosen.is_none() && config.mentions(&name) {
            continue;
        }
        let edit = match &told.ticket {
            Some(ticket) => PeerEdit::Add(&name, ticket),
            None => PeerEdit::AddKey(&name, &told.key),
        };
        match edit_peers(config, &edit) {
            Err(error @ PeerError::Exists { .. }) => taken = Err(error),
            kept => return kept.map(|file| (name, file)),
        }
    }
    taken
}

/// Finds the user's own peer that already has the other host's key and ticket, under the chosen
/// name if there is one. A peer with only a key gets the ticket.
fn known(
    config: &Config,
    chosen: Option<&PeerName>,
    told: &Introduction,
) -> Result<Option<(PeerName, PathBuf)>, PeerError> {
    for (name, peer) in config.peers().iter().filter(|(_, peer)| peer.is_users) {
        if chosen.is_some_and(|chosen| chosen != name) || peer.key().ok() != Some(told.key) {
            continue;
        }
        match &told.ticket {
            Some(ticket) if peer.key_alone().is_some() => {
                let file = edit_peers(config, &PeerEdit::Complete(name, ticket))?;
                return Ok(Some((name.clone(), file)));
            }
            Some(ticket) if peer.ticket().ok().as_ref() != Some(ticket) => {}
            _ => return Ok(Some((name.clone(), peer.file.clone()))),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PublicKey;
    use crate::secret::Secret;
    use crate::settings::ConfigSources;
    use crate::ticket::Ticket;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn told(name: &str, key: u8, permission: Option<u8>) -> Introduction {
        let key = PublicKey([key; 32]);
        let ticket = |byte| Ticket {
            key,
            permission: Secret::new([byte; 16]),
            addresses: vec![],
            relays: vec![],
            names: vec![],
        };
        Introduction { name: name.parse().ok(), key, ticket: permission.map(ticket) }
    }

    #[test]
    fn nobody_s_name_is_taken_and_a_known_host_has_one() {
        let place = tempfile::tempdir().unwrap();
        let [user, system] = ["user.toml", "system.toml"].map(|name| place.path().join(name));
        let key = PublicKey([9; 32]);
        fs::write(&user, "[recv]\nallow = [\"nas-2\"]\n").unwrap();
        fs::write(&system, format!("[peer.nas]\nkey = \"{key}\"\n")).unwrap();
        for file in [&user, &system] {
            fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let sources =
            ConfigSources { user: Some(user.clone()), system: Some(system), ..ConfigSources::default() };
        let keep = |chosen: Option<&str>, told: Introduction| {
            let config = Config::read(sources.clone());
            let chosen = chosen.map(|name| name.parse().unwrap());
            let (name, file) = keep_peer(&config, chosen.as_ref(), &told).unwrap();
            assert_eq!(file, user);
            name.to_string()
        };
        // The system's file has the first name, and `allow` the second.
        assert_eq!(keep(None, told("nas", 1, None)), "nas-3");
        assert_eq!(keep(None, told("other", 1, None)), "nas-3", "known");
        assert_eq!(keep(None, told("nas", 1, Some(1))), "nas-3", "it receives now");
        assert_eq!(keep(None, told("nas", 1, Some(1))), "nas-3");
        assert_eq!(keep(None, told("nas", 1, None)), "nas-3", "the ticket stays");
        assert_eq!(keep(None, told("nas", 1, Some(2))), "nas-4", "another ticket replaces none");
        assert_eq!(keep(None, told("nas", 9, None)), "nas-5", "what the system's file has is not the user's");
        assert_eq!(keep(Some("nas-2"), told("", 2, None)), "nas-2", "a person chose it");
        assert_eq!(keep(Some("nas-2"), told("", 3, None)), "nas-2-2");
        assert_eq!(keep(None, told("", 4, None)), "peer");
        let long = "a".repeat(64);
        assert_eq!(keep(None, told(&long, 5, None)), long);
        assert_eq!(keep(None, told(&long, 6, None)), format!("{}-2", "a".repeat(60)));
    }
}
