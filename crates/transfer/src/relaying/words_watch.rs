//! Watches the file of named relay words, on a thread of its own, and tells the relay of each
//! change.

use super::counters_reader::ReportDesk;
use super::file_notice::{FileNotice, NoticeEnd, Waited};
use super::named_words::{NamedRelayWord, NamedRelayWords, WordName};
use super::run_event::RelayRunEvent;
use crate::event_loop::news_channel::NewsSender;
use crate::state_directory::StateError;
use byway_relay::NamedWord;
use byway_wire::Duration;
use byway_wire::heartbeat::RelayId;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Time between two looks at a file whose changes the system does not tell, or whose last change
/// the relay does not know yet.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two checks of a file on a network's file system, which reports no changes that
/// another host makes.
const TOLD_LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// The identity and state of a file: device, inode, bytes, and the times of the last changes of its
/// contents and of its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp(u64, u64, u64, [i64; 4]);

/// The file of named relay words, and its state at the last read.
pub(super) struct WordsFile {
    path: PathBuf,
    relay: RelayId,
    /// `None`: there was no file.
    seen: Option<FileStamp>,
    /// The desk, which gets the names of the relay words.
    desk: Arc<ReportDesk>,
}

impl WordsFile {
    /// Opens the file. Also returns the relay words in it.
    pub(super) fn open(
        path: PathBuf,
        relay: RelayId,
        desk: Arc<ReportDesk>,
    ) -> Result<(Self, Vec<NamedWord>), StateError> {
        let mut file = Self { path, relay, seen: None, desk };
        // Taken before the contents: a change in between is seen again.
        file.seen = file.stamp()?;
        let words = file.read()?;
        Ok((file, words))
    }

    /// Watches this file from now on. The [`FileNotice`] waits for changes; dropping the
    /// [`NoticeEnd`] ends its wait.
    pub(super) fn notice(&self) -> io::Result<(FileNotice, NoticeEnd)> {
        FileNotice::new(&self.path)
    }

    fn stamp(&self) -> Result<Option<FileStamp>, StateError> {
        match fs::metadata(&self.path) {
            Ok(found) => {
                let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
                Ok(Some(FileStamp(found.dev(), found.ino(), found.len(), times)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => {
                let what = "look at the words that have names in".into();
                Err(StateError::Io { what, path: self.path.clone(), source })
            }
        }
    }

    fn read(&self) -> Result<Vec<NamedWord>, StateError> {
        let list = NamedRelayWords::load(&self.path, self.relay)?;
        let names: BTreeMap<u32, WordName> =
            list.words.iter().map(|word| (word.grant, word.name.clone())).collect();
        self.desk.set_names(names);
        let word =
            |word: &NamedRelayWord| NamedWord { grant: word.grant, is_revoked: word.is_revoked, carried: 0 };
        Ok(list.words.iter().map(word).collect())
    }
}

/// Watches the file, and gives the relay its words after each change.
pub(super) struct WordsWatch<T> {
    pub(super) file: WordsFile,
    /// The function that gives the relay the words. It returns false if the relay has no room for
    /// an order now.
    pub(super) tell: T,
    pub(super) news: NewsSender<RelayRunEvent>,
}

impl<T: FnMut(Vec<NamedWord>) -> bool> WordsWatch<T> {
    /// Checks the file after each change, until the [`NoticeEnd`] of `notice` is dropped.
    pub(super) fn run(mut self, notice: &FileNotice) {
        let (mut is_failing, mut is_known) = (false, false);
        loop {
            let longest = if notice.is_told() && is_known { TOLD_LOOK_INTERVAL } else { LOOK_INTERVAL };
            if notice.wait(longest) == Waited::Ended {
                return;
            }
            let looked = self.look();
            is_known = matches!(looked, Ok(true));
            let Err(error) = looked else {
                is_failing = false;
                continue;
            };
            if !std::mem::replace(&mut is_failing, true) {
                let _ = self.news.try_send(RelayRunEvent::WordsUnread(error));
            }
        }
    }

    /// Reads the file if it changed. A damaged file knows no word, so no word with a name opens
    /// anything. A file that the system does not give leaves things as they are. Returns whether
    /// the relay knows what is in the file.
    fn look(&mut self) -> Result<bool, StateError> {
        let stamp = self.file.stamp()?;
        if stamp == self.file.seen {
            return Ok(true);
        }
        let (words, damage) = match self.file.read() {
            Ok(words) => (words, None),
            Err(error @ StateError::Damaged { .. }) => (Vec::new(), Some(error)),
            Err(error) => return Err(error),
        };
        let good = words.iter().filter(|word| !word.is_revoked).count();
        if !(self.tell)(words) {
            return Ok(false); // at the next look
        }
        self.file.seen = stamp;
        let event = damage.map_or(RelayRunEvent::WordsRead { good }, RelayRunEvent::WordsUnread);
        let _ = self.news.try_send(event);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::checked_lines::check;
    use super::*;
    use crate::event_loop::news_channel::news_channel;
    use std::sync::mpsc::{Receiver, sync_channel};

    #[test]
    fn each_change_is_told_once_and_a_damaged_file_opens_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (path, relay) = (place.path().join("relay-words"), RelayId([1; 16]));
        let (file, words) = WordsFile::open(path.clone(), relay, Arc::default()).unwrap();
        assert!(words.is_empty());
        let ((orders, ordered), (news, inbox)) = (sync_channel(1), news_channel(8));
        let tell = move |words| orders.try_send(words).is_ok();
        let mut watch = WordsWatch { file, tell, news };
        let put = |lines: &str| {
            let body = format!("byway-relay-words 1\nrelay {relay}\n{lines}");
            let text = format!("{body}check {}\n", check(&body));
            assert!(text.parse::<NamedRelayWords>().is_ok());
            crate::state_directory::put(&path, &text).unwrap();
        };
        let told = |ordered: &Receiver<Vec<NamedWord>>| -> Vec<Vec<(u32, bool)>> {
            let of = |words: Vec<NamedWord>| words.iter().map(|word| (word.grant, word.is_revoked)).collect();
            ordered.try_iter().map(of).collect()
        };
        watch.look().unwrap();
        assert!(told(&ordered).is_empty());
        put("word alice 5 - - 1832925600 good\n");
        for _ in 0..3 {
            watch.look().unwrap();
        }
        assert_eq!(told(&ordered), [[(5, false)]]);
        put("word alice 5 - - 1832925600 revoked\n");
        watch.look().unwrap();
        // The relay has not taken the order yet, so the next change waits.
        put("word alice 5 - - 1832925600 revoked\nword bob 6 - - 1832925600 good\n");
        watch.look().unwrap();
        assert_eq!(told(&ordered), [[(5, true)]]);
        watch.look().unwrap();
        assert_eq!(told(&ordered), [[(5, true), (6, false)]]);
        std::fs::write(&path, "byway").unwrap();
        watch.look().unwrap();
        assert_eq!(told(&ordered), [[]]);
        std::fs::remove_file(&path).unwrap();
        watch.look().unwrap();
        assert_eq!(told(&ordered), [[]]);
        let unread = |event: &RelayRunEvent| matches!(event, RelayRunEvent::WordsUnread(_));
        let events: Vec<bool> = inbox.try_iter().map(|event| unread(&event)).collect();
        assert_eq!(events, [false, false, false, true, false]);
        std::fs::write(&path, "byway").unwrap();
        assert!(WordsFile::open(path, relay, Arc::default()).is_err());
    }
}
