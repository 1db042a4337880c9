//! What each of byway's sessions on this host has sent by an uplink: a small file, in which each
//! session has a place. So sessions know what of the interface's traffic is byway's, and how many
//! of them share the line. Nobody has to run for that, and who dies leaves a number that no longer
//! grows.
//!
//! Any user of the host may write to it. Who enters what he did not send has others' sessions
//! yield to him, as he could by sending.

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, ftruncate};
use rustix::io::{Errno, pread, pwrite};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Where ledgers are: all users of a host have it, and it is in memory.
const LEDGER_DIRECTORY: &str = "/dev/shm";
/// Sessions that one uplink knows at once.
const MAX_SESSIONS: usize = 64;
/// Bytes of a session's place: what it sent, and when it sent last, in milliseconds of
/// `CLOCK_MONOTONIC`.
const PLACE_LEN: usize = 16;
const FILE_LEN: usize = MAX_SESSIONS * PLACE_LEN;
/// A place whose session has sent nothing for this time in milliseconds may be another's.
const MAX_IDLE_MILLIS: u64 = 10_000;
/// A session that has sent nothing for this time, less than the one above, looks for a place anew.
const MAX_KEPT_MILLIS: u64 = 5_000;
/// A session that sent within this time in milliseconds shares the line.
const ACTIVE_MILLIS: u64 = 1_000;

/// More bytes than a session sends between two exchanges. Whoever enters more enters this.
const MAX_EXCHANGED_BYTES: u64 = 1 << 30;
/// In a place's time: the session takes no part of the line.
const LENT_FLAG: u64 = 1 << 63;

/// What a session writes to its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    sent: u64,
    /// When the session sent last, and [`LENT_FLAG`].
    sent_at: u64,
}

impl Place {
    /// The time for which the session has sent nothing, in milliseconds.
    const fn idle_millis(self, now: u64) -> u64 {
        now.saturating_sub(self.sent_at & !LENT_FLAG)
    }

    /// Whether the session takes a part of the line.
    const fn is_active(self, now: u64) -> bool {
        self.sent_at & LENT_FLAG == 0 && self.idle_millis(now) < ACTIVE_MILLIS
    }
}

/// What other sessions did since the exchange before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerNews {
    /// Bytes that they sent.
    pub sent: u64,
    /// The number of them that sent in the last second.
    pub active: u32,
    /// The number of those whose place is before this session's.
    pub before: u32,
}

/// A session's place in the ledger of an uplink.
#[derive(Debug)]
pub struct UplinkLedger {
    file: OwnedFd,
    own: Option<usize>,
    places: [Place; MAX_SESSIONS],
}

impl UplinkLedger {
    /// Opens the ledger of an interface of this network namespace. All users of the host share it.
    ///
    /// # Errors
    /// The file cannot be made, or somebody has put something else in its place.
    pub fn open(interface: u32) -> io::Result<Self> {
        Self::open_in(Path::new(LEDGER_DIRECTORY), interface)
    }

    fn open_in(directory: &Path, interface: u32) -> io::Result<Self> {
        // Interfaces of two namespaces may have the same number.
        let namespace = rustix::fs::stat("/proc/self/ns/net").map_or(0, |it| it.st_ino);
        let path = directory.join(format!("byway-uplink-{namespace}-{interface}"));
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        // A kernel may refuse to open with CREATE what another user has made in such a directory.
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Err(Errno::NOENT) => Self::make(&path, flags),
            opened => opened,
        }?;
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the ledger is no file"));
        }
        if stat.st_size != FILE_LEN as _ {
            ftruncate(&file, FILE_LEN as u64)?;
        }
        let mut ledger = Self { file, own: None, places: [Place::default(); MAX_SESSIONS] };
        ledger.places = ledger.read()?;
        Ok(ledger)
    }

    fn make(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        match rustix::fs::open(path, flags | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR) {
            // Somebody made it in the meantime.
            Err(Errno::EXIST) => rustix::fs::open(path, flags, Mode::empty()),
            made => {
                let file = made?;
                fchmod(&file, Mode::from_raw_mode(0o666))?;
                Ok(file)
            }
        }
    }

    fn read(&self) -> io::Result<[Place; MAX_SESSIONS]> {
        let mut bytes = [0; FILE_LEN];
        let length = pread(&self.file, &mut bytes[..], 0)?;
        let mut places = [Place::default(); MAX_SESSIONS];
        let (whole, _) = bytes.get(..length).unwrap_or_default().as_chunks::<PLACE_LEN>();
        for (place, bytes) in places.iter_mut().zip(whole) {
            let (sent, sent_at) = bytes.split_at(PLACE_LEN / 2);
            let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            *place = Place { sent: number(sent), sent_at: number(sent_at) };
        }
        Ok(places)
    }

    /// Takes a place that nobody uses. `None`: all are taken.
    fn take_place(&self, now: u64) -> io::Result<Option<usize>> {
        // Whoever finds it locked tries again at the next exchange.
        flock(&self.file, FlockOperation::NonBlockingLockExclusive)?;
        let places = self.read()?;
        let free = places.iter().position(|place| place.idle_millis(now) >= MAX_IDLE_MILLIS);
        if let Some(free) = free {
            // It is taken, and not active before it sends.
            let sent = places.get(free).map_or(0, |place| place.sent);
            self.write(free, Place { sent, sent_at: now | LENT_FLAG })?;
        }
        flock(&self.file, FlockOperation::Unlock)?;
        Ok(free)
    }

    fn write(&self, index: usize, place: Place) -> io::Result<()> {
        let mut bytes = [0; PLACE_LEN];
        let (sent, sent_at) = bytes.split_at_mut(PLACE_LEN / 2);
        sent.copy_from_slice(&place.sent.to_ne_bytes());
        sent_at.copy_from_slice(&place.sent_at.to_ne_bytes());
        pwrite(&self.file, &bytes, (index * PLACE_LEN) as u64)?;
        Ok(())
    }

    /// Enters what this session sent since the exchange before, and returns what others did.
    ///
    /// # Errors
    /// The file cannot be used, or all places are taken.
    pub fn exchange(&mut self, sent: u64) -> io::Result<LedgerNews> {
        self.exchange_as(sent, 0)
    }

    /// Enters what strangers sent by a line that this host lends. It is not the host's own, and
    /// takes no part of the line.
    ///
    /// # Errors
    /// The file cannot be used, or all places are taken.
    pub fn exchange_lent(&mut self, sent: u64) -> io::Result<LedgerNews> {
        self.exchange_as(sent, LENT_FLAG)
    }

    fn exchange_as(&mut self, sent: u64, mark: u64) -> io::Result<LedgerNews> {
        let now = millis();
        let kept = self.own.and_then(|own| Some((own, *self.places.get(own)?)));
        let kept = kept.filter(|(_, place)| place.idle_millis(now) < MAX_KEPT_MILLIS);
        if kept.is_none() {
            self.own = self.take_place(now)?;
            if self.own.is_none() {
                return Err(io::Error::new(ErrorKind::StorageFull, "too many sessions share the uplink"));
            }
        }
        let mut places = self.read()?;
        let mut others = LedgerNews::default();
        for (index, (place, before)) in places.iter_mut().zip(&self.places).enumerate() {
            if Some(index) == self.own {
                place.sent = place.sent.wrapping_add(sent);
                if sent > 0 {
                    place.sent_at = now | mark;
                    self.write(index, *place)?;
                }
                continue;
            }
            others.sent += place.sent.wrapping_sub(before.sent).min(MAX_EXCHANGED_BYTES);
            let is_active = place.is_active(now);
            others.active += u32::from(is_active);
            others.before += u32::from(is_active && Some(index) < self.own);
        }
        self.places = places;
        Ok(others)
    }
}

fn millis() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn each_session_learns_what_the_others_sent() {
        let place = tempfile::tempdir().unwrap();
        let [mut one, mut two, mut other] =
            [7, 7, 8].map(|interface| UplinkLedger::open_in(place.path(), interface).unwrap());
        assert_eq!(one.exchange(500).unwrap(), LedgerNews::default());
        assert_eq!(two.exchange(30).unwrap(), LedgerNews { sent: 500, active: 1, before: 1 });
        assert_eq!(two.exchange(40).unwrap(), LedgerNews { sent: 0, active: 1, before: 1 });
        assert_eq!(one.exchange(0).unwrap(), LedgerNews { sent: 70, active: 1, before: 0 });
        assert_eq!(one.exchange(900).unwrap(), LedgerNews { sent: 0, active: 1, before: 0 });
        assert_eq!(two.exchange(0).unwrap(), LedgerNews { sent: 900, active: 1, before: 1 });
        assert_eq!(other.exchange(1).unwrap(), LedgerNews::default(), "of another interface");
        two.exchange_lent(50).unwrap();
        let news = one.exchange(0).unwrap();
        assert_eq!(news, LedgerNews { sent: 50, active: 0, before: 0 }, "what is lent has no part");
        drop(one);
        assert_eq!(two.exchange(1).unwrap().sent, 0, "who is gone sends nothing");
    }

    #[test]
    fn a_place_is_anothers_only_once_its_session_is_long_silent() {
        let place = tempfile::tempdir().unwrap();
        let mut sessions: Vec<UplinkLedger> =
            (0..MAX_SESSIONS).map(|_| UplinkLedger::open_in(place.path(), 1).unwrap()).collect();
        for session in &mut sessions {
            session.exchange(1).unwrap();
        }
        let mut late = UplinkLedger::open_in(place.path(), 1).unwrap();
        assert_eq!(late.exchange(1).unwrap_err().kind(), ErrorKind::StorageFull);
        let silent = millis() - MAX_IDLE_MILLIS;
        sessions[5].write(5, Place { sent: 77, sent_at: silent }).unwrap();
        late.exchange(3).unwrap();
        assert_eq!((late.own, late.read().unwrap()[5].sent), (Some(5), 80), "it goes on from there");
    }

    #[test]
    fn all_users_share_it_and_what_is_no_file_is_refused() {
        let place = tempfile::tempdir().unwrap();
        UplinkLedger::open_in(place.path(), 1).unwrap();
        let path = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
        let name = path.file_name().unwrap().to_str().unwrap().strip_suffix("-1").unwrap().to_owned() + "-2";
        std::os::unix::fs::symlink(&path, place.path().join(&name)).unwrap();
        assert!(UplinkLedger::open_in(place.path(), 2).is_err(), "a link");
        std::fs::create_dir(place.path().join(name.trim_end_matches('2').to_owned() + "3")).unwrap();
        assert!(UplinkLedger::open_in(place.path(), 3).is_err(), "a directory");
    }

    #[test]
    fn whatever_others_write_costs_a_session_its_part_at_most() {
        let place = tempfile::tempdir().unwrap();
        let mut session = UplinkLedger::open_in(place.path(), 1).unwrap();
        session.exchange(10).unwrap();
        let path = std::fs::read_dir(place.path()).unwrap().next().unwrap().unwrap().path();
        for content in [vec![0xff; FILE_LEN], vec![7; 100], Vec::new(), vec![1; FILE_LEN * 2]] {
            std::fs::write(&path, content).unwrap();
            if let Ok(news) = session.exchange(10) {
                assert!(news.sent <= MAX_SESSIONS as u64 * MAX_EXCHANGED_BYTES);
                assert!(news.before <= news.active && news.active < MAX_SESSIONS as u32);
            }
            let _ = UplinkLedger::open_in(place.path(), 1).unwrap().exchange(1);
        }
    }
}
