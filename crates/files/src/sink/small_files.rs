//! Makes small files on another thread, while the [`Sink`]'s thread moves finished files to their
//! final names. A file qualifies if all its bytes are there at once and it needs no change of mode
//! after its creation. `durable` (sync of each file) must be off.

use super::contents::{Contents, MetadataState};
use super::partial::is_early;
use super::small_file::{MadeFile, SmallFile};
use super::{Sink, SinkState};
use crate::error::SinkError;
use byway_wire::ObjectId;
use rustix::fs::Mode;

impl Sink {
    /// Prepares a small file, whose whole contents are `bytes`, for another thread. Once that
    /// thread has made the file, pass the outcome to [`Sink::made`] of this sink. Do so before you
    /// drop this sink or open another sink for the same transfer.
    ///
    /// # Errors
    /// The file does not qualify: it is not whole, an earlier try began it, or `durable` is on. Or
    /// it might not get its final mode when it is created. The error holds `bytes`.
    pub fn apart(&mut self, object: ObjectId, offset: u64, bytes: Vec<u8>) -> Result<SmallFile, Vec<u8>> {
        let (durable, state) = (self.options.durable, self.state);
        let Some(incoming) = self.objects.get_mut(object) else { return Err(bytes) };
        let (layout, mode) = (&incoming.hashes.layout, incoming.metadata.mode);
        let whole = offset == 0
            && bytes.len() as u64 == layout.size
            && incoming.travels.size() == layout.size
            && !layout.is_divided();
        let fresh = incoming.contents == Contents::Coming && !incoming.finished && state != SinkState::Broken;
        if !whole || !fresh || durable || !is_early(mode) || !self.partials.makes_with(mode) {
            return Err(bytes);
        }
        incoming.contents = Contents::Apart;
        let (name, directory) = (incoming.key.name(), self.partials.shared());
        let mtime = incoming.metadata.mtime;
        Ok(SmallFile::new(object, (directory, name), Mode::from_raw_mode(mode.into()), mtime, bytes))
    }

    /// Registers a file that another thread made. Returns the file's buffer for reuse.
    ///
    /// # Errors
    /// The disk is full or cannot be used any more. An error that concerns only this file is
    /// reported to the sender, not returned.
    pub fn made(&mut self, made: MadeFile) -> Result<Vec<u8>, SinkError> {
        let MadeFile { object, bytes, hash } = made;
        if let Some(key) = self.orphans.remove(&object) {
            self.partials.remove(key);
            self.keys.remove(&key);
            return Ok(bytes);
        }
        let Some(incoming) = self.objects.get_mut(object).filter(|it| it.contents == Contents::Apart) else {
            return Ok(bytes);
        };
        match hash {
            Ok(hash) => {
                (incoming.contents, incoming.metadata_state) =
                    (Contents::Growing { fresh: true }, MetadataState::Full);
                incoming.received.insert(0, bytes.len() as u64);
                incoming.hashes.set(0, hash);
            }
            Err(_) => {
                incoming.contents = Contents::Coming;
                let finished = std::mem::take(&mut incoming.finished);
                // What stands in the way goes first, and what cannot be is told.
                self.write(object, 0, &bytes)?;
                self.objects.get_mut(object).into_iter().for_each(|it| it.finished = finished);
            }
        }
        if self.state != SinkState::Broken && self.objects.get(object).is_some_and(|it| it.is_ready()) {
            self.conclude(object)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Counts, MANIFEST_VERSION, Metadata, Record, RecordCodec, Timestamp};
    use crate::{Finish, SinkOptions, Written};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    const METADATA: Metadata =
        Metadata { mode: 0o640, mtime: Timestamp { seconds: 1_500_000_000, nanoseconds: 7 } };

    struct Host {
        top: tempfile::TempDir,
        sink: Sink,
        codec: RecordCodec,
        objects: u32,
    }

    impl Host {
        fn new() -> Self {
            let top = tempfile::tempdir().unwrap();
            let sink = Sink::open(&top.path().join("in"), SinkOptions::default()).unwrap();
            let mut host = Self { top, sink, codec: RecordCodec::default(), objects: 0 };
            host.say(&Record::Start { version: MANIFEST_VERSION });
            host
        }

        fn say(&mut self, record: &Record<'_>) {
            let mut bytes = Vec::new();
            self.codec.encode(record, &mut bytes);
            self.sink.records(&bytes).unwrap();
        }

        fn file(&mut self, path: &[u8], contents: &[u8]) -> ObjectId {
            let object = ObjectId(self.objects);
            self.objects += 1;
            self.say(&Record::File { object, size: contents.len() as u64, metadata: METADATA, path });
            object
        }

        fn hash(&mut self, object: ObjectId, contents: &[u8]) {
            self.say(&Record::Hash { object, hash: *blake3::hash(contents).as_bytes() });
        }

        /// Sends a first file, from which the sink learns the result of setting its mode.
        fn begin(&mut self) {
            let first = self.file(b"first", b"1");
            self.sink.apart(first, 0, b"1".to_vec()).unwrap_err();
            assert_eq!(self.sink.write(first, 0, b"1").unwrap(), Written::Stored);
            self.hash(first, b"1");
            assert_eq!(self.sink.finish(first).unwrap(), Finish::Verified);
        }

        fn end(mut self) -> (tempfile::TempDir, u64) {
            let counts = Counts {
                files: self.objects.into(),
                bytes: self.sink.summary().announced.bytes,
                ..Counts::default()
            };
            self.say(&Record::End(counts));
            while self.sink.work(u64::MAX).unwrap() {}
            assert!(self.sink.is_complete());
            let failed = self.sink.summary().failed;
            drop(self.sink);
            assert!(!self.top.path().join("in/.byway-partial").exists());
            (self.top, failed)
        }
    }

    fn make(small: SmallFile) -> MadeFile {
        SmallFile::make(vec![small]).pop().unwrap()
    }

    #[test]
    fn a_file_made_apart_is_as_any_other() {
        let mut host = Host::new();
        host.begin();
        // Its hash may come before, while and after it is made; so may its end.
        let files = [b"a", b"b", b"c"].map(|path| host.file(path, b"contents"));
        host.hash(files[0], b"contents");
        let small = files.map(|file| host.sink.apart(file, 0, b"contents".to_vec()).unwrap());
        host.hash(files[1], b"contents");
        for file in [files[0], files[1]] {
            assert_eq!(host.sink.write(file, 0, b"contents").unwrap(), Written::Stored, "the same again");
            assert_eq!(host.sink.finish(file).unwrap(), Finish::Waiting);
        }
        for made in SmallFile::make(small.into()) {
            assert_eq!(host.sink.made(made).unwrap(), b"contents");
        }
        assert_eq!(host.sink.finish(files[0]).unwrap(), Finish::Settled);
        assert_eq!(host.sink.finish(files[2]).unwrap(), Finish::Waiting);
        host.hash(files[2], b"contents");
        let (top, failed) = host.end();
        assert_eq!(failed, 0);
        for path in ["a", "b", "c"] {
            let path = top.path().join("in").join(path);
            assert_eq!(fs::read(&path).unwrap(), b"contents");
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o7777, 0o640);
            assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (1_500_000_000, 7));
        }
    }

    #[test]
    fn what_is_not_what_the_sender_said_gets_no_name() {
        let mut host = Host::new();
        host.begin();
        let file = host.file(b"a", b"contents");
        let small = host.sink.apart(file, 0, b"comments".to_vec()).unwrap();
        host.hash(file, b"contents");
        assert_eq!(host.sink.finish(file).unwrap(), Finish::Waiting);
        host.sink.made(make(small)).unwrap();
        let (top, failed) = host.end();
        assert_eq!(failed, 1);
        assert!(!top.path().join("in/a").exists());
    }

    #[test]
    fn what_stands_in_the_way_is_cleared_here() {
        let mut host = Host::new();
        host.begin();
        let file = host.file(b"a", b"contents");
        host.hash(file, b"contents");
        let small = host.sink.apart(file, 0, b"contents".to_vec()).unwrap();
        let outside = host.top.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        let partial =
            fs::read_dir(host.top.path().join("in/.byway-partial")).unwrap().next().unwrap().unwrap().path();
        std::os::unix::fs::symlink(&outside, partial.join(std::str::from_utf8(&small.name).unwrap()))
            .unwrap();
        assert_eq!(host.sink.finish(file).unwrap(), Finish::Waiting);
        let made = make(small);
        assert!(made.hash.is_err());
        assert_eq!(host.sink.made(made).unwrap(), b"contents");
        let (top, failed) = host.end();
        assert_eq!(failed, 0);
        assert_eq!(fs::read(top.path().join("in/a")).unwrap(), b"contents");
        assert_eq!(fs::read(outside).unwrap(), b"mine");
    }

    #[test]
    fn of_a_file_that_was_withdrawn_meanwhile_nothing_stays() {
        let mut host = Host::new();
        host.begin();
        let file = host.file(b"a", b"contents");
        let small = host.sink.apart(file, 0, b"contents".to_vec()).unwrap();
        host.say(&Record::Withdrawn { object: file, why: crate::manifest::Withdrawal::Changed });
        // The name of the unfinished file is taken until it is gone.
        let again = host.file(b"a", b"contents");
        assert_eq!(host.sink.apart(again, 0, b"contents".to_vec()).unwrap_err(), b"contents");
        assert_eq!(host.sink.made(make(small)).unwrap(), b"contents");
        let (top, failed) = host.end();
        assert_eq!(failed, 2);
        assert!(!top.path().join("in/a").exists());
    }

    #[test]
    fn what_has_a_past_or_a_future_stays_here() {
        let mut host = Host::new();
        let first = host.file(b"first", b"12");
        let mut refused =
            |object, offset, bytes: &[u8]| host.sink.apart(object, offset, bytes.to_vec()).is_err();
        assert!(refused(first, 0, b"12"), "nobody knows yet whether it gets its mode");
        assert!(refused(first, 0, b"1") && refused(first, 1, b"2") && refused(ObjectId(9), 0, b"12"));
        host.sink.write(first, 0, b"1").unwrap();
        assert!(host.sink.apart(first, 1, b"2".to_vec()).is_err());
    }
}
