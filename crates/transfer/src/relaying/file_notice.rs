//! Notice of changes of one file: inotify(7) on its directory.

use byway_wire::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::{Errno, read};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

/// The events that change a file or its name's target: a write in place, a replacement, a removal,
/// or a change of mode.
const CHANGE_FLAGS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ATTRIB);
/// The most bytes of notices that one read takes. The rest ends the next wait.
const MAX_READ_BYTES: usize = 4 << 10;

/// Waits for a change of a file. Other files of its directory end the wait as well.
pub(super) struct FileNotice {
    /// `None`: the system gives no notice, as where its user has no more watches.
    changes: Option<OwnedFd>,
    /// Hangs up when the [`NoticeEnd`] is dropped.
    end: PipeReader,
}

/// Ends all waits of a [`FileNotice`] when it is dropped.
pub(super) struct NoticeEnd(#[expect(dead_code, reason = "its drop is what is waited for")] PipeWriter);

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// Something changed, or the time is over.
    Look,
    /// The [`NoticeEnd`] was dropped.
    Ended,
}

impl FileNotice {
    /// Watches the directory of `file`.
    ///
    /// # Errors
    /// The system has no descriptor.
    pub(super) fn new(file: &Path) -> io::Result<(Self, NoticeEnd)> {
        let (end, other_end) = io::pipe()?;
        let watch = || -> Result<OwnedFd, Errno> {
            let changes = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            inotify::add_watch(
                &changes,
                folder.unwrap_or(Path::new(".")),
                CHANGE_FLAGS | WatchFlags::ONLYDIR,
            )?;
            Ok(changes)
        };
        Ok((Self { changes: watch().ok(), end }, NoticeEnd(other_end)))
    }

    /// Whether changes of the file end a wait before its time.
    pub(super) const fn is_told(&self) -> bool {
        self.changes.is_some()
    }

    /// Waits for a change or the end, and for `longest` at most.
    pub(super) fn wait(&self, longest: Duration) -> Waited {
        let mut watched = vec![PollFd::new(&self.end, PollFlags::empty())];
        watched.extend(self.changes.iter().map(|changes| PollFd::new(changes, PollFlags::IN)));
        let time = Timespec::try_from(longest).ok();
        // An interrupted wait is a look too many, and no harm.
        let _ = poll(&mut watched, time.as_ref());
        let has_ended = watched.first().is_some_and(|end| !end.revents().is_empty());
        if has_ended {
            return Waited::Ended;
        }
        if let Some(changes) = &self.changes {
            let _ = read(changes.as_fd(), &mut [0_u8; MAX_READ_BYTES]);
        }
        Waited::Look
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_change_and_the_end_are_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("words");
        let (notice, end) = FileNotice::new(&file).unwrap();
        assert!(notice.is_told());
        assert_eq!(notice.wait(Duration::ZERO), Waited::Look, "its time is over");
        fs::write(&file, "one").unwrap();
        assert_eq!(notice.wait(LONG), Waited::Look);
        fs::write(place.path().join("new"), "two").unwrap();
        assert_eq!(notice.wait(LONG), Waited::Look);
        fs::rename(place.path().join("new"), &file).unwrap();
        assert_eq!(notice.wait(LONG), Waited::Look);
        fs::remove_file(&file).unwrap();
        assert_eq!(notice.wait(LONG), Waited::Look);
        drop(end);
        assert_eq!((notice.wait(LONG), notice.wait(LONG)), (Waited::Ended, Waited::Ended));
    }

    #[test]
    fn a_directory_that_is_not_there_gives_no_notice() {
        let place = tempfile::tempdir().unwrap();
        let (notice, _end) = FileNotice::new(&place.path().join("none/words")).unwrap();
        assert!(!notice.is_told());
        assert_eq!(notice.wait(Duration::ZERO), Waited::Look);
    }
}
