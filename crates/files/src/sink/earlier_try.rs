//! Hashes the chunks that an earlier try of a transfer left on disk, and offers the hashes to the
//! sender ([`resume`]). The journal only tells which chunks to read: offered hashes always come
//! from the disk.

use super::Sink;
use super::contents::{Contents, is_zero};
use super::read_back::{PriorContents, ReadBack};
use crate::chunks::{HASH_READ_LEN, Hash, Hashing, hole};
use crate::contained_dir::mtime;
use crate::error::SinkError;
use crate::missing_ranges::FileRanges;
use crate::receiver_report::{MAX_HAVE_HASHES, Reason, Report};
use crate::resume::{self, Resumed};
use byway_engine::data::RangeSet;
use byway_wire::{DecodeError, ObjectId};
use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The cost of looking for one file, in bytes of the budget of [`Sink::work`].
const LOOK_COST: u64 = 16 * 1_024;

impl Sink {
    /// Whether [`Self::recall`] has something to do.
    pub(super) fn is_recalling(&self) -> bool {
        self.read_back.is_some() || !self.asked.is_empty()
    }

    /// Reads on in the file being read back, up to about `budget` bytes. Returns the part of the
    /// budget that was spent.
    pub(super) fn recall(&mut self, budget: u64) -> Result<u64, SinkError> {
        let Some(mut recall) = self.read_back.take().or_else(|| self.look()) else { return Ok(LOOK_COST) };
        // It may have been withdrawn meanwhile.
        if !self.objects.contains(recall.object) {
            return Ok(LOOK_COST);
        }
        let mut spent = 0;
        let mut buffer = vec![0; HASH_READ_LEN];
        while spent < budget {
            match self.read_on(&mut recall, &mut buffer) {
                Ok(0) => {
                    self.offer(&mut recall, true);
                    return Ok(spent + LOOK_COST);
                }
                Ok(read) => spent += read,
                // What cannot be read is not there.
                Err(_) => {
                    (recall.next, recall.hashing) = (u32::MAX, None);
                }
            }
        }
        self.read_back = Some(recall);
        Ok(spent)
    }

    /// Opens the existing contents of the next file to report to the sender. `None`: no file is
    /// left, or the next one was withdrawn.
    fn look(&mut self) -> Option<ReadBack> {
        let object = self.asked.pop_front()?;
        let incoming = self.objects.get(object)?;
        let (key, layout) = (incoming.key, incoming.hashes.layout);
        let prior = if self.partials.reopen(object, key, &layout) {
            let journaled =
                layout.is_divided() && self.partials.journal(object, key, layout).is_ok_and(|(_, was)| was);
            PriorContents::Partial { journaled }
        } else {
            let (size, time) = (layout.size, incoming.metadata.mtime);
            let any_time = self.plan.is_some_and(|plan| plan.contents);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let found = self.tree.open(&incoming.path, flags).ok().filter(|file| {
                rustix::fs::fstat(file).is_ok_and(|stat| {
                    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                        && u64::try_from(stat.st_size) == Ok(size)
                        && (any_time || mtime(&stat) == time)
                })
            });
            found.map_or(PriorContents::Nothing, |file| PriorContents::Placed(File::from(file)))
        };
        Some(ReadBack { object, prior, next: 0, hashing: None, zeros: true, first: 0, run: Vec::new() })
    }

    /// Reads one piece of the file. Returns its length, 0 at the end.
    fn read_on(&mut self, recall: &mut ReadBack, buffer: &mut [u8]) -> io::Result<u64> {
        let object = recall.object;
        let Some((key, layout)) = self.objects.get(object).map(|it| (it.key, it.hashes.layout)) else {
            return Ok(0);
        };
        if recall.hashing.is_none() {
            let next = match recall.prior {
                PriorContents::Nothing => None,
                PriorContents::Placed(_) => Some(recall.next),
                PriorContents::Partial { journaled: true } => {
                    let (journal, _) = self.partials.journal(object, key, layout)?;
                    (recall.next..layout.count()).find(|index| matches!(journal.read(*index), Ok(Some(_))))
                }
                PriorContents::Partial { journaled: false } => {
                    let from = SeekFrom::Data(layout.range(recall.next).0);
                    let file = self.partials.file(object, key)?;
                    rustix::fs::seek(file, from).ok().map(|data| layout.index(data))
                }
            };
            let Some(index) = next.filter(|index| *index < layout.count()) else { return Ok(0) };
            let (start, end) = layout.range(index);
            if let PriorContents::Placed(file) = &recall.prior
                && self.objects.get(object).is_some_and(|incoming| incoming.hashes.is_hole(index))
                && !has_data(file, start, end)
            {
                self.found(recall, index, hole());
                return Ok(LOOK_COST);
            }
            (recall.hashing, recall.zeros) = (Some((index, Hashing::new(&layout, index))), true);
        }
        let Some((index, hashing)) = &mut recall.hashing else { return Ok(0) };
        let index = *index;
        let file = match &recall.prior {
            PriorContents::Placed(file) => file,
            _ => self.partials.file(object, key)?,
        };
        let length = usize::try_from(hashing.left()).unwrap_or(HASH_READ_LEN).min(buffer.len());
        let piece = buffer.get_mut(..length).unwrap_or_default();
        file.read_exact_at(piece, hashing.at)?;
        recall.zeros &= is_zero(piece);
        if let Some(hash) = hashing.update(piece) {
            let is_hole = self.objects.get(object).is_some_and(|incoming| incoming.hashes.is_hole(index));
            // Zeros are a hole to a sender that has one there, however they are stored here.
            let hash = if is_hole && recall.zeros { hole() } else { hash };
            self.found(recall, index, hash);
        }
        Ok(length as u64)
    }

    /// Notes that a chunk exists, with its hash.
    fn found(&mut self, recall: &mut ReadBack, index: u32, hash: Hash) {
        (recall.hashing, recall.next) = (None, index + 1);
        if let Some(incoming) = self.objects.get_mut(recall.object) {
            match hash == hole() {
                true => incoming.hashes.set_zeros(index),
                false => incoming.hashes.set(index, hash),
            }
        }
        if recall.first + recall.run.len() as u32 != index || recall.run.len() >= MAX_HAVE_HASHES {
            self.offer(recall, false);
            recall.first = index;
        }
        recall.run.push(hash);
    }

    /// Offers the sender the chunks that were read since the last time.
    fn offer(&mut self, recall: &mut ReadBack, last: bool) {
        let placed = matches!(recall.prior, PriorContents::Placed(_));
        let hashes = std::mem::take(&mut recall.run);
        if last && let Some(incoming) = self.objects.get_mut(recall.object) {
            incoming.contents = Contents::Offered { placed };
        }
        if last || !hashes.is_empty() {
            let (object, first) = (recall.object, recall.first);
            Report::Have { object, first, hashes, placed, last }.encode(&mut self.out);
        }
    }

    /// Handles the sender's answer: the chunks `kept` are kept, and the others are sent.
    pub(super) fn take_parts(&mut self, object: ObjectId, kept: &RangeSet) -> Result<(), SinkError> {
        let Some(incoming) = self.objects.get_mut(object) else { return Ok(()) };
        let Contents::Offered { placed } = incoming.contents else {
            return Err(DecodeError::Range("order of records").into());
        };
        let (layout, hashes) = (incoming.hashes.layout, &mut incoming.hashes);
        let Some(resumed) = resume::resumed(&layout, placed, kept, |index| hashes.knows(index)) else {
            self.fail(object, Reason::Protocol, "keeps what is not there".to_owned());
            return Ok(());
        };
        incoming.contents = match resumed {
            Resumed::Nothing => Contents::Coming,
            Resumed::Placed => Contents::Placed,
            Resumed::Partial => Contents::Growing { fresh: false },
        };
        hashes.retain(|index| kept.covers(index.into(), u64::from(index) + 1));
        incoming.travels = FileRanges::without(&layout, kept, &hashes.holes);
        let travels = incoming.travels.size();
        self.summary.skipped = self.summary.skipped.saturating_add(layout.size - travels);
        incoming.finished = travels == 0;
        for (start, end) in kept.iter() {
            let (from, to) = layout.bytes(start, end);
            incoming.received.insert(from, to);
            incoming.kept += to - from;
        }
        // The file was there before: nobody promises that there are zeros.
        let key = incoming.key;
        let mut emptied = Ok(());
        if incoming.is_created() {
            for (start, end) in incoming.hashes.holes.iter() {
                let (from, to) = layout.bytes(start, end);
                emptied = emptied.and_then(|()| self.partials.empty(object, key, from, to - from));
            }
        }
        emptied.or_else(|errno| self.fail_io(object, errno.into()))
    }
}

/// Whether the file stores any data between `start` and `end`. True if the system cannot tell.
fn has_data(file: &File, start: u64, end: u64) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(start)) {
        Ok(at) => at < end,
        Err(errno) => errno != Errno::NXIO,
    }
}
