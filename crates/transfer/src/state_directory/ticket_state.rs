//! The saved state of a ticket, which outlives the process that printed it: its permission, its
//! port, and its owner.

use super::draft_file::{DraftFile, sync_parent};
use super::state_error::{Result, StateError};
use crate::identity::PublicKey;
use crate::secret::Secret;
use byway_wire::checked_text;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The beginning of the file's line.
const SECRET_PREFIX: &str = "byway-receiver-secret-";
/// The file's content before it holds a ticket. An empty file counts as damaged.
const PLACEHOLDER_LINE: &str = "byway-receiver-begun\n";
/// Bytes of the stored state: permission, port, and the sender's key. A key of zeros means that the
/// ticket has no owner.
const PAYLOAD_LEN: usize = 16 + 2 + 32;
/// Bytes of the stored state in older files, which have no owner's key.
const UNBOUND_PAYLOAD_LEN: usize = 16 + 2;

/// The permission, port and sender of a receiver's ticket, saved for one receiving directory. The
/// file is locked by one process. A second process that receives into the same directory gets a new
/// ticket, which is not saved.
#[derive(Debug)]
pub struct TicketState {
    permission: Secret<[u8; 16]>,
    port: Option<u16>,
    sender: Option<PublicKey>,
    kept: Option<LockedFile>,
}

/// A locked file with the stored state, or with the placeholder.
#[derive(Debug)]
struct LockedFile {
    path: PathBuf,
    file: File,
    /// Whether the file holds no ticket.
    is_empty: bool,
}

impl TicketState {
    /// A ticket that is not stored.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn passing() -> io::Result<Self> {
        let mut permission = [0; 16];
        getrandom::fill(&mut permission).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { permission: Secret::new(permission), port: None, sender: None, kept: None })
    }

    /// The one kept at `path`, or a new one if none is.
    ///
    /// # Errors
    /// What is kept is damaged, or others can read it: a new ticket would shut out whoever has the
    /// old one, and nobody would know why.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let cannot = || StateError::io("keep a ticket in", path);
        let file = open_or_begin(path).map_err(cannot())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Self::passing().map_err(cannot()),
            locked => locked.map_err(|error| cannot()(error.into()))?,
        }
        let mut kept = LockedFile { path: path.to_owned(), file, is_empty: false };
        let known = kept.read()?;
        kept.is_empty = known.is_none();
        let standing = known.map_or_else(Self::passing, Ok).map_err(cannot())?;
        Ok(Self { kept: Some(kept), ..standing })
    }

    /// The secret by which the receiver recognises its ticket.
    #[must_use]
    pub const fn permission(&self) -> &Secret<[u8; 16]> {
        &self.permission
    }

    /// The port that tickets named before.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// The sender that completed the first transfer. The ticket is valid for no other.
    #[must_use]
    pub const fn sender(&self) -> Option<PublicKey> {
        self.sender
    }

    /// Whether the ticket is not stored, because another process that receives into this directory
    /// uses the stored one.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        self.kept.is_none()
    }

    /// Whether the ticket is stored, so that the next run has it.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| !kept.is_empty)
    }

    /// Makes every ticket printed so far worthless. The port stays.
    ///
    /// # Errors
    /// The system gives no randomness, or what is kept cannot be replaced.
    pub fn renew(&mut self) -> io::Result<()> {
        self.permission = Self::passing()?.permission;
        self.sender = None;
        self.write()
    }

    /// Saves the ticket for the next run, which is to listen on `port`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, port: u16) -> io::Result<()> {
        self.port = Some(port);
        self.write()
    }

    /// Binds the ticket to `sender`, for this run and later ones.
    ///
    /// # Errors
    /// The state cannot be written. Then the ticket is bound for this run alone.
    pub fn bind(&mut self, sender: PublicKey) -> io::Result<()> {
        self.sender = Some(sender);
        self.write()
    }

    /// The next run prints another ticket.
    pub fn forget(&mut self) {
        if let Some(kept) = &mut self.kept {
            // It stays good if it cannot be cut short, or if the power fails now: a nuisance at
            // most.
            kept.is_empty = kept.overwrite(PLACEHOLDER_LINE).is_ok();
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        let port = self.port.unwrap_or_default().to_be_bytes();
        let sender = self.sender.map_or([0; 32], |sender| sender.0);
        let payload = Secret::new([&self.permission.expose()[..], &port, &sender].concat());
        let line = Secret::new(checked_text::encode(SECRET_PREFIX, payload.expose()) + "\n");
        kept.write(line.expose())?;
        kept.is_empty = false;
        Ok(())
    }
}

impl LockedFile {
    fn read(&mut self) -> Result<Option<TicketState>> {
        let cannot = || StateError::io("read the ticket in", &self.path);
        let mode = self.file.metadata().map_err(cannot())?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(StateError::Exposed { what: "ticket", path: self.path.clone(), mode });
        }
        let mut text = Vec::new();
        let read = (&self.file).take(checked_text::MAX_LEN as u64).read_to_end(&mut text);
        read.map_err(cannot())?;
        let text = Secret::new(String::from_utf8(text).unwrap_or_default());
        // A run that is killed while it forgets a ticket may leave the rest of that behind it.
        if text.expose().starts_with(PLACEHOLDER_LINE) {
            return Ok(None);
        }
        let payload = checked_text::decode(SECRET_PREFIX, text.expose()).ok().map(Secret::new);
        let known = payload.and_then(|payload| parse(payload.expose()));
        let holds = || "holds no whole byway ticket".to_owned();
        known.map(Some).ok_or_else(|| StateError::Damaged { path: self.path.clone(), holds: holds() })
    }

    /// Overwrites the file's line with one of the same length. If the process is killed meanwhile,
    /// the file holds the old or the new line.
    fn overwrite(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all_at(line.as_bytes(), 0)?;
        self.file.set_len(line.len() as u64)
    }

    /// Overwrites the file's line, and syncs it to disk.
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.overwrite(line)?;
        self.file.sync_all()
    }
}

/// Opens the file at `path`. A missing file is made atomically with its first contents.
fn open_or_begin(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().read(true).write(true).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let draft = DraftFile::write(path, PLACEHOLDER_LINE)?;
    match fs::hard_link(draft.path(), path) {
        Ok(()) => sync_parent(path)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    open()
}

fn parse(payload: &[u8]) -> Option<TicketState> {
    if payload.len() != PAYLOAD_LEN && payload.len() != UNBOUND_PAYLOAD_LEN {
        return None;
    }
    let (permission, rest) = payload.split_first_chunk::<16>()?;
    let (port, sender) = rest.split_first_chunk::<2>()?;
    let port = Some(u16::from_be_bytes(*port)).filter(|port| *port != 0);
    let sender = sender.first_chunk::<32>().copied().filter(|key| *key != [0; 32]).map(PublicKey);
    Some(TicketState { permission: Secret::new(*permission), port, sender, kept: None })
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.is_empty {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("receiving/x");
        (directory, path)
    }

    #[test]
    fn the_next_run_has_what_this_one_kept_and_another_process_has_not() {
        let (_guard, path) = place();
        let mut first = TicketState::open(&path).unwrap();
        first.keep(4_711).unwrap();
        let permission = first.permission().clone();
        let other = TicketState::open(&path).unwrap();
        assert!(other.permission() != &permission && other.port().is_none() && other.is_passing());
        drop((first, other));
        let mut again = TicketState::open(&path).unwrap();
        assert!(again.is_kept());
        assert_eq!((again.permission(), again.port()), (&permission, Some(4_711)));
        again.forget();
        assert!(!again.is_kept());
        drop(again);
        assert!(!path.exists());
        assert!(TicketState::open(&path).unwrap().permission() != &permission);
    }

    #[test]
    fn whose_it_is_is_kept_until_it_is_renewed() {
        let (_guard, path) = place();
        let mut first = TicketState::open(&path).unwrap();
        first.keep(4_711).unwrap();
        let permission = first.permission().clone();
        first.bind(PublicKey([7; 32])).unwrap();
        drop(first);
        let mut again = TicketState::open(&path).unwrap();
        assert_eq!((again.permission(), again.sender()), (&permission, Some(PublicKey([7; 32]))));
        again.keep(4_712).unwrap();
        drop(again);
        let mut again = TicketState::open(&path).unwrap();
        assert_eq!((again.port(), again.sender()), (Some(4_712), Some(PublicKey([7; 32]))));
        again.renew().unwrap();
        let renewed = again.permission().clone();
        assert!(renewed != permission && again.sender().is_none());
        drop(again);
        let again = TicketState::open(&path).unwrap();
        assert_eq!((again.permission(), again.port(), again.sender()), (&renewed, Some(4_712), None));
    }

    #[test]
    fn what_an_earlier_version_kept_is_good_still() {
        let (_guard, path) = place();
        TicketState::open(&path).unwrap().keep(1).unwrap();
        let before = [&[3; 16][..], &4_711_u16.to_be_bytes()].concat();
        fs::write(&path, checked_text::encode(SECRET_PREFIX, &before)).unwrap();
        let mut standing = TicketState::open(&path).unwrap();
        assert_eq!((standing.permission().expose(), standing.port()), (&[3; 16], Some(4_711)));
        standing.bind(PublicKey([7; 32])).unwrap();
        drop(standing);
        assert_eq!(TicketState::open(&path).unwrap().sender(), Some(PublicKey([7; 32])));
    }

    #[test]
    fn what_is_damaged_or_exposed_is_refused_and_stays() {
        let (_guard, path) = place();
        let mut standing = TicketState::open(&path).unwrap();
        standing.keep(1).unwrap();
        drop(standing);
        let good = fs::read(&path).unwrap();
        type Damage = fn(&Path, &[u8]);
        let damages: [Damage; 6] = [
            |path, _| fs::write(path, b"").unwrap(),
            |path, good| fs::write(path, &good[..good.len() - 4]).unwrap(),
            |path, _| fs::write(path, [0xff; 50]).unwrap(),
            |path, _| fs::write(path, checked_text::encode(SECRET_PREFIX, &[1; 17])).unwrap(),
            |path, _| {
                fs::write(path, checked_text::encode("byway-identity-secret-", &[1; PAYLOAD_LEN])).unwrap()
            },
            |path, _| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap(),
        ];
        for damage in damages {
            fs::write(&path, &good).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(TicketState::open(&path).unwrap().is_kept());
            damage(&path, &good);
            let damaged = fs::read(&path).unwrap();
            let refused = TicketState::open(&path).unwrap_err().to_string();
            assert!(refused.contains("for a new one"), "{refused}");
            assert_eq!(fs::read(&path).unwrap(), damaged);
        }
        fs::remove_file(&path).unwrap();
        assert!(!TicketState::open(&path).unwrap().is_kept());
        assert!(!path.exists(), "nothing was kept");
    }

    #[test]
    fn a_run_that_is_killed_while_it_forgets_its_ticket_leaves_nothing_that_is_refused() {
        let (_guard, path) = place();
        let mut standing = TicketState::open(&path).unwrap();
        standing.keep(1).unwrap();
        let permission = standing.permission().clone();
        drop(standing);
        let good = fs::read(&path).unwrap();
        // Killed between the bytes and the length.
        fs::write(&path, [PLACEHOLDER_LINE.as_bytes(), &good[PLACEHOLDER_LINE.len()..]].concat()).unwrap();
        let mut again = TicketState::open(&path).unwrap();
        assert!(!again.is_kept() && again.permission() != &permission);
        again.keep(2).unwrap();
        let permission = again.permission().clone();
        drop(again);
        assert_eq!(TicketState::open(&path).unwrap().permission(), &permission);
    }

    /// After a loss of power some file systems give zeros, or the bytes of another file.
    #[test]
    fn a_ticket_that_a_loss_of_power_spoiled_is_refused() {
        let (_guard, path) = place();
        let mut standing = TicketState::open(&path).unwrap();
        standing.keep(1).unwrap();
        drop(standing);
        let good = fs::read(&path).unwrap();
        let half = good.len() / 2;
        for spoiled in [
            vec![0; good.len()],
            [&good[..half], &vec![0; good.len() - half]].concat(),
            [&vec![0; half], &good[half..]].concat(),
            [&good[..], &[0; 64]].concat(),
            [&good[..], &good].concat(),
            PLACEHOLDER_LINE.as_bytes()[..8].to_vec(),
            vec![0; PLACEHOLDER_LINE.len()],
        ] {
            fs::write(&path, &spoiled).unwrap();
            let refused = TicketState::open(&path).unwrap_err();
            assert!(matches!(refused, StateError::Damaged { .. }), "{refused}");
            assert!(fs::read(&path).unwrap() == spoiled);
        }
        fs::write(&path, &good).unwrap();
        assert!(TicketState::open(&path).unwrap().is_kept());
    }

    #[test]
    fn a_run_that_is_killed_before_its_ticket_is_kept_leaves_nothing_that_is_refused() {
        let (_guard, path) = place();
        std::mem::forget(TicketState::open(&path).unwrap());
        let begun = fs::read(&path).unwrap();
        assert_eq!(begun, PLACEHOLDER_LINE.as_bytes());
        // The lock of the run that was killed is gone with it; here it is another file's.
        fs::remove_file(&path).unwrap();
        fs::write(&path, begun).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!TicketState::open(&path).unwrap().is_kept());
    }
}
