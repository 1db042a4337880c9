//! Records that a source keeps until the sink has written them.

use crate::MAX_NUMBER;
use std::collections::VecDeque;
use std::sync::Arc;

/// Items for which room is never given back.
const MIN_KEPT_CAPACITY: usize = 1024;

/// A record, and the time of its arrival in milliseconds of the source's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TimedRecord {
    bytes: Arc<[u8]>,
    came_ms: u64,
}

/// A record with its number, or a gap of numbers without records.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BufferItem {
    Record(TimedRecord),
    /// This number of records was given up.
    Gap(u64),
}

impl BufferItem {
    const fn numbers(&self) -> u64 {
        match self {
            Self::Record(_) => 1,
            Self::Gap(count) => *count,
        }
    }
}

/// The next message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextMessage {
    /// A record to send.
    Record(Arc<[u8]>),
    /// This number of numbers has no records.
    Skipped(u64),
}

/// Numbered records from the first that is not written to the last that came.
#[derive(Clone, Debug)]
pub struct RecordBuffer {
    /// The number of the first.
    first: u64,
    items: VecDeque<BufferItem>,
    /// The number of items that were sent in this session.
    said: usize,
    /// The number after the last item that was sent in this session. In `ever_said_until`: in any
    /// session.
    said_until: u64,
    ever_said_until: u64,
    /// The number after the last.
    end: u64,
    bytes: usize,
    /// Bytes of the records that were not sent in this session.
    unsaid: usize,
    most: usize,
    given_up: u64,
}

impl RecordBuffer {
    /// An empty buffer. It holds up to `most` bytes of records, or a single record that is longer.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            first: 0,
            items: VecDeque::new(),
            said: 0,
            said_until: 0,
            ever_said_until: 0,
            end: 0,
            bytes: 0,
            unsaid: 0,
            most,
            given_up: 0,
        }
    }

    /// Whether a record of `length` bytes fits.
    #[must_use]
    pub fn has_room(&self, length: usize) -> bool {
        self.bytes == 0 || self.bytes + length <= self.most
    }

    /// Appends a record. `came_ms`: the time of its arrival in milliseconds.
    pub fn push(&mut self, bytes: Arc<[u8]>, came_ms: u64) {
        self.bytes += bytes.len();
        self.unsaid += bytes.len();
        self.end += 1;
        self.items.push_back(BufferItem::Record(TimedRecord { bytes, came_ms }));
    }

    /// Gives up the oldest records that were not sent yet, until one of `length` bytes has room.
    /// Returns whether it has.
    pub fn make_room(&mut self, length: usize) -> bool {
        while !self.has_room(length) {
            let unsaid = |at: &usize| matches!(self.items.get(*at), Some(BufferItem::Record(_)));
            let Some(at) = (self.said..self.items.len()).find(unsaid) else { return false };
            let before = at.checked_sub(1).filter(|before| *before >= self.said);
            if let Some(BufferItem::Record(record)) = self.items.get(at) {
                self.bytes -= record.bytes.len();
                self.unsaid -= record.bytes.len();
            }
            self.given_up += 1;
            if let Some(BufferItem::Gap(count)) = before.and_then(|before| self.items.get_mut(before)) {
                *count += 1;
                self.items.remove(at);
            } else if let Some(item) = self.items.get_mut(at) {
                *item = BufferItem::Gap(1);
            }
        }
        true
    }

    /// Returns the next message to send, and marks it as sent.
    pub fn say(&mut self) -> Option<NextMessage> {
        let item = self.items.get(self.said)?;
        self.said_until += item.numbers();
        self.ever_said_until = self.ever_said_until.max(self.said_until);
        let next = match item {
            BufferItem::Record(record) => {
                self.unsaid -= record.bytes.len();
                NextMessage::Record(Arc::clone(&record.bytes))
            }
            BufferItem::Gap(count) => NextMessage::Skipped(*count),
        };
        self.said += 1;
        Some(next)
    }

    /// The length in bytes of the next record to send. `None`: no message waits to be sent.
    #[must_use]
    pub fn next_length(&self) -> Option<usize> {
        match self.items.get(self.said)? {
            BufferItem::Record(record) => Some(record.bytes.len()),
            BufferItem::Gap(_) => Some(0),
        }
    }

    /// Notes that the sink has written all records before `number`, and drops them. Returns false
    /// if they were never sent.
    pub fn on_written(&mut self, number: u64) -> bool {
        if number > self.ever_said_until {
            return false;
        }
        self.drop_until(number);
        true
    }

    /// Drops all records before `number`, because the sink has them, perhaps from another run.
    pub fn drop_until(&mut self, number: u64) {
        while let Some(item) = self.items.front() {
            if self.first + item.numbers() > number {
                break;
            }
            self.first += item.numbers();
            if let BufferItem::Record(record) = item {
                self.bytes -= record.bytes.len();
                if self.said == 0 {
                    self.unsaid -= record.bytes.len();
                }
            }
            self.items.pop_front();
            self.said = self.said.saturating_sub(1);
        }
        self.said_until = self.said_until.max(self.first);
        self.ever_said_until = self.ever_said_until.max(self.first);
        // After an outage the room of what waited is given back.
        if self.items.capacity() > MIN_KEPT_CAPACITY && self.items.capacity() / 8 > self.items.len() {
            self.items.shrink_to(self.items.len() * 2);
        }
    }

    /// Begins a session with a sink that wants record `number` next. Records from `number` on are
    /// sent again, as far as they are kept. Returns the number at which sending begins. `None` if
    /// the sink has records that this source never gave.
    pub fn begin(&mut self, number: u64) -> Option<u64> {
        if !self.on_written(number) {
            return None;
        }
        self.said = 0;
        self.said_until = self.first;
        self.unsaid = self.bytes;
        Some(self.first)
    }

    /// Raises the numbers of all records, kept and future, by `more`. Returns whether that is
    /// possible: no number exceeds [`MAX_NUMBER`].
    pub fn number_from(&mut self, more: u64) -> bool {
        if self.end.checked_add(more).is_none_or(|end| end > MAX_NUMBER) {
            return false;
        }
        self.first += more;
        self.end += more;
        self.said_until += more;
        self.ever_said_until += more;
        true
    }

    /// The number of the record that comes next.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Whether all is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes of records that were not sent in this session.
    #[must_use]
    pub const fn unsaid(&self) -> usize {
        self.unsaid
    }

    /// Records that are kept.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.end - self.first
    }

    /// Returns the number of records that were given up so far.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// When the oldest record that is not written arrived, in milliseconds. `None`: all are
    /// written.
    #[must_use]
    pub fn oldest_ms(&self) -> Option<u64> {
        self.items.iter().find_map(|item| match item {
            BufferItem::Record(record) => Some(record.came_ms),
            BufferItem::Gap(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(count: u8) -> RecordBuffer {
        let mut kept = RecordBuffer::new(10);
        for number in 0..count {
            kept.push(Arc::from([number; 2]), u64::from(number));
        }
        kept
    }

    fn said(kept: &mut RecordBuffer) -> Vec<NextMessage> {
        std::iter::from_fn(|| kept.say()).collect()
    }

    fn record(number: u8) -> NextMessage {
        NextMessage::Record(Arc::from([number; 2]))
    }

    #[test]
    fn what_is_not_written_is_said_again() {
        let mut kept = kept(3);
        assert_eq!(said(&mut kept), [record(0), record(1), record(2)]);
        assert!(kept.on_written(1) && kept.count() == 2 && kept.oldest_ms() == Some(1));
        assert_eq!((kept.unsaid(), kept.begin(2), kept.unsaid()), (0, Some(2), 2));
        assert_eq!(said(&mut kept), [record(2)]);
        assert_eq!(kept.begin(4), None, "nobody gave record 3");
        assert!(kept.on_written(3) && kept.is_empty() && kept.end() == 3);
        assert!(!kept.on_written(4));
    }

    #[test]
    fn a_sink_that_lost_its_disk_is_told_where_the_records_begin() {
        let mut kept = kept(3);
        assert!(!kept.on_written(2), "nobody said them");
        assert_eq!(said(&mut kept).len(), 3);
        assert!(kept.on_written(2));
        assert_eq!(kept.begin(0), Some(2));
    }

    #[test]
    fn the_oldest_that_were_not_said_are_given_up() {
        let mut kept = kept(5);
        assert_eq!(kept.say(), Some(record(0)));
        assert!(!kept.has_room(2) && kept.make_room(2) && kept.given_up() == 1);
        kept.push(Arc::from([5; 2]), 5);
        assert!(kept.make_room(2) && kept.given_up() == 2);
        kept.push(Arc::from([6; 2]), 6);
        assert_eq!(said(&mut kept), [NextMessage::Skipped(2), record(3), record(4), record(5), record(6)]);
        assert!(!kept.make_room(2) && kept.unsaid() == 0, "what was said is kept");
        assert!(kept.on_written(3) && kept.count() == 4 && kept.next_length().is_none());
        assert!(kept.on_written(2), "an older word changes nothing");
    }

    #[test]
    fn the_room_of_what_is_written_is_given_back() {
        let mut kept = RecordBuffer::new(1 << 20);
        (0..100_000).for_each(|number| kept.push(Arc::from([0; 2]), number));
        assert_eq!(kept.unsaid(), 200_000);
        kept.drop_until(99_990);
        assert!(kept.count() == 10 && kept.unsaid() == 20);
        assert!(kept.items.capacity() <= MIN_KEPT_CAPACITY, "{}", kept.items.capacity());
    }

    #[test]
    fn a_source_that_begins_again_goes_on_with_the_sink_s_numbers() {
        let mut kept = kept(2);
        assert!(!kept.number_from(MAX_NUMBER) && kept.number_from(100));
        assert_eq!((kept.begin(100), kept.end()), (Some(100), 102));
        assert_eq!(said(&mut kept), [record(0), record(1)]);
        let mut long = RecordBuffer::new(10);
        assert!(long.has_room(1_000), "one that is longer than all may be taken alone");
        long.push(Arc::from([0; 1_000]), 0);
        assert!(!long.has_room(1));
    }
}
