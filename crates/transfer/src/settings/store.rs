//! Changes of the user's configuration file: one process at a time, and all or nothing.

use super::config::{Config, Finding, Peer};
use super::document::Document;
use super::editor;
use super::peer_name::PeerName;
use super::recipient::PeerError;
use super::schema::{PEER_TABLE, PUBLIC_KEY_KEY, TICKET_KEY};
use super::sources;
use crate::identity::PublicKey;
use crate::state_directory::put_as;
use crate::ticket::Ticket;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;
use zeroize::Zeroizing;

/// Mode of a file that is made.
const NEW_FILE_MODE: u32 = 0o600;
/// Symbolic links that lead to the file, at most.
const MAX_LINKS: usize = 40;
/// Attempts to lock the file, and the time between two of them: ten seconds in all.
const LOCK_TRIES: u32 = 500;
const LOCK_INTERVAL: Duration = Duration::from_millis(20);

/// A change of the user's file.
#[derive(Clone, Copy, Debug)]
pub enum PeerEdit<'a> {
    /// Adds a name for the ticket of a receiver.
    Add(&'a PeerName, &'a Ticket),
    /// Adds a name for the key of a host that receives nothing.
    AddKey(&'a PeerName, &'a PublicKey),
    /// Adds a name for the ticket of a receiver, or replaces the ticket of that name.
    Replace(&'a PeerName, &'a Ticket),
    /// Adds a ticket to a name that has only a key. The ticket must have that key.
    Complete(&'a PeerName, &'a Ticket),
    /// The first name becomes the second.
    Rename(&'a PeerName, &'a PeerName),
    /// Removes a name with its ticket.
    Remove(&'a PeerName),
}

impl PeerEdit<'_> {
    /// The text of the user's file after the change. `path` is for errors alone.
    ///
    /// # Errors
    /// The text has a mistake, the name is not in it, or the new one is.
    pub fn apply(&self, config: &Config, path: &Path, text: &str) -> Result<String, PeerError> {
        let read = |text: &str| {
            Document::read(text).map_err(|mistake| {
                PeerError::Wrong(Finding::new(path, Some(mistake.line), mistake.to_string()))
            })
        };
        let document = read(text)?;
        let own = own_peers(&document);
        let is_free = |name: &PeerName| match own.contains(name.as_str()) {
            true => Err(PeerError::Exists { name: name.clone(), file: path.to_owned() }),
            false => Ok(()),
        };
        let is_there = |name: &PeerName| match own.contains(name.as_str()) {
            true => Ok(()),
            false => Err(config.unknown(name)),
        };
        let edited = match self {
            Self::Add(name, ticket) => {
                is_free(name)?;
                editor::with_peer(text, name, (TICKET_KEY, &ticket.to_string()))
            }
            Self::AddKey(name, key) => {
                is_free(name)?;
                editor::with_peer(text, name, (PUBLIC_KEY_KEY, &key.to_string()))
            }
            Self::Replace(name, ticket) => match own.contains(name.as_str()) {
                true => editor::with_new_ticket(text, &document, name, &ticket.to_string()),
                false => editor::with_peer(text, name, (TICKET_KEY, &ticket.to_string())),
            },
            Self::Complete(name, ticket) => {
                let old = Config::of_text(text).peers().get(name).and_then(Peer::key_alone);
                if old != Some(ticket.key) {
                    return Err(PeerError::Exists { name: (*name).clone(), file: path.to_owned() });
                }
                let others = editor::without_peer(text, &document, name);
                editor::with_peer(&others, name, (TICKET_KEY, &ticket.to_string()))
            }
            Self::Rename(old, new) => {
                is_there(old)?;
                is_free(new)?;
                editor::with_new_name(text, &document, old, new)
            }
            Self::Remove(name) => {
                is_there(name)?;
                editor::without_peer(text, &document, name)
            }
        };
        // What a person wrote in a way that does not allow the change is left to the person.
        read(&edited)?;
        Ok(edited)
    }
}

/// The names of a file's peers, and of tables that are meant as peers.
fn own_peers(document: &Document) -> BTreeSet<String> {
    let headers = document.headers.iter().filter_map(|header| match header.path.as_slice() {
        [table, peer] if table.name == PEER_TABLE => Some(peer.name.clone()),
        _ => None,
    });
    let entries = document.entries.iter().filter_map(|entry| match *document.name_of(entry).as_slice() {
        [PEER_TABLE, peer, TICKET_KEY | PUBLIC_KEY_KEY] => Some(peer.to_owned()),
        _ => None,
    });
    headers.chain(entries).collect()
}

/// Changes the user's file, and makes it if it does not exist. Returns its path.
///
/// # Errors
/// As [`PeerEdit::apply`], or the file cannot be written.
pub fn edit_peers(config: &Config, change: &PeerEdit<'_>) -> Result<PathBuf, PeerError> {
    let path = config.sources().user.as_deref().ok_or(PeerError::NoFile)?;
    let cannot = |source| PeerError::NotWritten { file: path.to_owned(), source };
    let target = target_of(path).map_err(cannot)?;
    let directory = target.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
    let _lock = lock(directory, &target).map_err(cannot)?;
    let file = sources::read(&target).map_err(|error| PeerError::Wrong(Finding::of(path, error)))?;
    let text = file.as_ref().map_or("", |file| file.text.as_str());
    let edited = Zeroizing::new(change.apply(config, path, text)?);
    let for_all = config.sources().is_systems(path);
    let (mode, owner) =
        file.map_or((NEW_FILE_MODE, None), |file| (file.kept_mode(for_all), Some(file.owner)));
    put_as(&target, &edited, mode, owner).map_err(cannot)?;
    Ok(path.to_owned())
}

/// Follows symbolic links to a file, which need not exist.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = target.parent().unwrap_or(Path::new("")).join(link),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(target);
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// Locks the directory of a file against other processes that change the file. If directories
/// cannot be locked, as on NFS, a file beside `target` is locked.
fn lock(directory: &Path, target: &Path) -> io::Result<(OwnedFd, Option<File>)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor = open(directory, flags, Mode::empty())?;
    match wait_for(&descriptor) {
        Ok(()) => return Ok((descriptor, None)),
        Err(Errno::WOULDBLOCK) => return Err(Errno::WOULDBLOCK.into()),
        Err(_) => {}
    }
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let path = target.with_file_name(name);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(NEW_FILE_MODE).open(path)?;
    wait_for(&file)?;
    Ok((descriptor, Some(file)))
}

fn wait_for(file: &impl std::os::fd::AsFd) -> Result<(), Errno> {
    for _ in 0..LOCK_TRIES {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(LOCK_INTERVAL),
            locked => return locked,
        }
    }
    Err(Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::super::sources::ConfigSources;
    use super::*;
    use crate::identity::PublicKey;
    use crate::secret::Secret;
    use proptest::prelude::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn ticket() -> Ticket {
        let permission = Secret::new([1; 16]);
        Ticket { key: PublicKey([2; 32]), permission, addresses: vec![], relays: vec![], names: vec![] }
    }

    fn config(path: &Path) -> Config {
        Config::read(ConfigSources { user: Some(path.to_owned()), ..ConfigSources::default() })
    }

    fn add(path: &Path, name: &str) -> Result<PathBuf, PeerError> {
        edit_peers(&config(path), &PeerEdit::Add(&name.parse().unwrap(), &ticket()))
    }

    fn names(path: &Path) -> Vec<String> {
        config(path).peers().keys().map(ToString::to_string).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_file_is_made_for_its_owner_and_its_comments_stay() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/config.toml");
        add(&path, "nas").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let mut text = fs::read_to_string(&path).unwrap();
        text.insert_str(0, "# mine\n");
        text += "# the end\n";
        fs::write(&path, &text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let nas: PeerName = "nas".parse().unwrap();
        edit_peers(&config(&path), &PeerEdit::Rename(&nas, &"home".parse().unwrap())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("nas", "home"));
        assert_eq!(mode(&path), 0o600, "others need not read tickets");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        add(&path, "lab").unwrap();
        assert_eq!(mode(&path), 0o400, "a stricter mode stays");
        edit_peers(&config(&path), &PeerEdit::Remove(&"home".parse().unwrap())).unwrap();
        assert_eq!(names(&path), ["lab"]);
        assert!(fs::read_to_string(&path).unwrap().starts_with("# mine\n# the end\n"));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no draft and no lock stays");
    }

    #[test]
    fn a_ticket_joins_a_key_and_replaces_none_of_another() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        let [nas, laptop]: [PeerName; 2] = ["nas", "laptop"].map(|name| name.parse().unwrap());
        edit_peers(&config(&path), &PeerEdit::AddKey(&nas, &ticket().key)).unwrap();
        edit_peers(&config(&path), &PeerEdit::AddKey(&laptop, &PublicKey([3; 32]))).unwrap();
        edit_peers(&config(&path), &PeerEdit::Complete(&nas, &ticket())).unwrap();
        assert_eq!(names(&path), ["laptop", "nas"]);
        assert_eq!(config(&path).peers()[&nas].ticket(), Ok(ticket()));
        let text = fs::read_to_string(&path).unwrap();
        // Of another key, there already, or nowhere.
        let other = Ticket { permission: Secret::new([9; 16]), ..ticket() };
        for (name, ticket) in [(&laptop, ticket()), (&nas, other), (&"x".parse().unwrap(), ticket())] {
            let refused = edit_peers(&config(&path), &PeerEdit::Complete(name, &ticket));
            assert!(matches!(refused, Err(PeerError::Exists { .. })), "{name}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn links_stay_links() {
        let place = tempfile::tempdir().unwrap();
        let (path, middle) = (place.path().join("config.toml"), place.path().join("middle"));
        fs::create_dir(place.path().join("dots")).unwrap();
        symlink("middle", &path).unwrap();
        symlink("dots/byway.toml", &middle).unwrap();
        for name in ["nas", "lab"] {
            add(&path, name).unwrap();
        }
        assert!(path.is_symlink() && middle.is_symlink());
        assert_eq!(names(&place.path().join("dots/byway.toml")), ["lab", "nas"]);
        symlink("loop", place.path().join("loop")).unwrap();
        assert!(matches!(add(&place.path().join("loop"), "nas"), Err(PeerError::NotWritten { .. })));
    }

    #[test]
    fn of_many_at_once_none_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        std::thread::scope(|scope| {
            for number in 0..16 {
                let path = &path;
                scope.spawn(move || add(path, &format!("peer-{number}")).unwrap());
            }
        });
        assert_eq!(names(&path).len(), 16);
    }

    #[test]
    fn what_cannot_be_edited_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config.toml");
        for (text, part) in [
            ("peer = 1\n", ":3: this name was used before, in line 1"),
            ("[peer.nas]\n", "`nas` is in "),
            ("a = ?\n", ":1: write the value in quotes"),
        ] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = add(&path, "nas").unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::write(&path, "").unwrap();
        let nas: PeerName = "nas".parse().unwrap();
        assert!(matches!(
            edit_peers(&config(&path), &PeerEdit::Remove(&nas)),
            Err(PeerError::Unknown { .. })
        ));
        add(&path, "nas").unwrap();
        add(&path, "lab").unwrap();
        let taken = edit_peers(&config(&path), &PeerEdit::Rename(&nas, &"lab".parse().unwrap()));
        assert!(matches!(taken, Err(PeerError::Exists { .. })));
        assert!(matches!(
            edit_peers(&Config::default(), &PeerEdit::Add(&nas, &ticket())),
            Err(PeerError::NoFile)
        ));
    }

    /// The peers of a text but `without`.
    fn peers_of(text: &str, without: &[&PeerName]) -> Vec<(PeerName, Option<Ticket>)> {
        let config = Config::of_text(text);
        let others = config.peers().iter().filter(|(name, _)| !without.contains(name));
        others.map(|(name, peer)| (name.clone(), peer.ticket().ok())).collect()
    }

    proptest! {
        #[test]
        fn an_edit_touches_one_peer_alone(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[peer.nas]\n", "[ peer . nas ] # old\r\n", "[peer.\"a.b\"]\n", "[peer.'lab']", "[peer]\n",
                    "[peer.nas.more]\n", "ticket = 'x'\n", "ticket = \"byway1-x\" # y\n", "nas.ticket = 'n'\n",
                    "peer.nas.ticket = 'm'\n", "\"a.b\" . ticket='z'\n", "nas = 1\n", "lab.x.y = [\n'a',\n]\n",
                    "\n", "\n", "# note\n", "  ", "[send]\n", "retry = true\n", "relay = [ # two\n]\n",
                ]),
                0..14,
            )
        ) {
            let text = parts.concat();
            let [nas, lab, dotted] = ["nas", "lab", "a.b"].map(|name| name.parse::<PeerName>().unwrap());
            let config = Config::of_text(&text);
            let apply = |text: &str, edit: PeerEdit<'_>| edit.apply(&config, Path::new("c"), text);
            for (name, other) in [(&nas, &lab), (&lab, &dotted), (&dotted, &nas)] {
                if let Ok(added) = apply(&text, PeerEdit::Add(name, &ticket())) {
                    prop_assert!(added.starts_with(&text));
                    prop_assert_eq!(peers_of(&added, &[name]), peers_of(&text, &[]), "{:?}", text);
                    prop_assert!(peers_of(&added, &[]).contains(&(name.clone(), Some(ticket()))));
                    let removed = apply(&added, PeerEdit::Remove(name)).unwrap();
                    prop_assert_eq!(peers_of(&removed, &[]), peers_of(&text, &[]), "{:?}", text);
                }
                if let Ok(replaced) = apply(&text, PeerEdit::Replace(name, &ticket())) {
                    prop_assert_eq!(peers_of(&replaced, &[name]), peers_of(&text, &[name]), "{:?}", text);
                    prop_assert!(peers_of(&replaced, &[]).contains(&(name.clone(), Some(ticket()))));
                }
                if let Ok(renamed) = apply(&text, PeerEdit::Rename(name, other)) {
                    let both = [name, other];
                    prop_assert_eq!(peers_of(&renamed, &both), peers_of(&text, &both), "{:?}", text);
                    prop_assert_eq!(peers_of(&renamed, &[other]), peers_of(&text, &both), "{:?}", text);
                    prop_assert_eq!(renamed.lines().count(), text.lines().count());
                }
                if let Ok(removed) = apply(&text, PeerEdit::Remove(name)) {
                    prop_assert_eq!(peers_of(&removed, &[]), peers_of(&text, &[name]), "{:?}", text);
                    let is_note = |line: &&str| line.trim_start().starts_with("# note");
                    let notes = |text: &str| text.lines().filter(is_note).count();
                    prop_assert_eq!(notes(&removed), notes(&text), "{:?}", text);
                }
            }
        }
    }
}
