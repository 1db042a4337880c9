//! One transfer on its way in, as the receiver's owner keeps it.

use super::limit::Limit;
use super::mailbox::{Outbox, mailbox};
use super::receiver::{BrokenOff, Destination, Received};
use super::tally::{Amount, Counter, Tally};
use super::writer::{Back, Desk, Poured, Seen, TASKS, Task, write_pipe, write_tree};
use super::{BACK, FORTH, News};
use crate::exit::{Exit, Failure};
use crate::identity::PublicKey;
use crate::output::{Origin, Pause};
use byway_engine::Connection;
use byway_engine::data::{InEvent, Incoming, Outgoing, WriteRequest};
use byway_files::{Report, Summary};
use byway_net::Waker;
use byway_wire::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::Builder;

/// Bytes of a stream handed over at once.
const PIECE: usize = 64 << 10;
/// Tasks handed over at once, mostly.
const HANDFUL: usize = 32;
/// The part of its share at which a transfer is held by it.
const FULL: f64 = 0.75;
/// Reports that wait for the sender, in bytes; then what arrives waits too.
const REPORTS: usize = 1 << 20;

/// Which of a receiver's transfers one is.
#[derive(Clone, Copy)]
pub(super) struct Which {
    /// Counted since the receiver began.
    pub number: u32,
    /// Who sends.
    pub peer: PublicKey,
    /// What the sender calls it.
    pub transfer: [u8; 16],
}

/// A transfer on its way in.
pub(super) struct Taking {
    which: Which,
    is_pipe: bool,
    /// Takes what was not handed over when this ends early.
    rest: Sender<Vec<WriteRequest>>,
    /// Hung up when the thread that writes has come to its end.
    writer: Receiver<Poured>,
    tasks: Outbox<Task>,
    back: Receiver<Back>,
    reports: Vec<u8>,
    /// What the stream is read into.
    piece: Vec<u8>,
    opened: bool,
    /// Bytes of the manifest.
    manifest: u64,
    /// What the thread that writes knows.
    seen: Seen,
    /// The stream from the sender is at its end.
    read: bool,
    /// The end of a pipe was handed over.
    ended: bool,
    summary: Option<Summary>,
    done_at: Option<Instant>,
    failure: Option<Failure>,
    counter: Counter,
    /// Its share of what is taken, in bytes per second.
    share: Option<u64>,
}

impl Taking {
    /// Starts the thread that writes.
    pub fn start(
        destination: &Destination,
        which: Which,
        before: Option<Receiver<Poured>>,
        now: Instant,
        news: &SyncSender<News>,
        waker: &Waker,
    ) -> io::Result<Self> {
        // A piece of a stream is larger than most files, and counts for nothing once it was handed over.
        let is_pipe = matches!(destination, Destination::Stdout);
        let (tasks, inbox) = mailbox(if is_pipe { TASKS / 4 } else { TASKS / HANDFUL });
        let (give, back) = sync_channel(2 * TASKS);
        let (rest, left) = channel();
        let (end, writer) = sync_channel(1);
        let (news, waker, seen) = (news.clone(), waker.clone(), Seen::default());
        let desk = Desk {
            tasks: inbox,
            rest: left,
            before,
            ended: end,
            back: give,
            seen: seen.clone(),
            news,
            waker,
        };
        let thread = Builder::new().name("byway write".into());
        match destination {
            Destination::Directory(directory, modes) => {
                let (directory, modes) = (directory.clone(), *modes);
                thread.spawn(move || write_tree(&directory, modes, which.transfer, desk))?;
            }
            Destination::Stdout => {
                thread.spawn(move || write_pipe(io::stdout(), desk))?;
            }
        }
        let mut counter = Counter::default();
        counter.begin(now);
        Ok(Self {
            which,
            is_pipe,
            rest,
            writer,
            tasks,
            back,
            reports: Vec::new(),
            piece: Vec::new(),
            opened: false,
            manifest: 0,
            seen,
            read: false,
            ended: false,
            summary: None,
            done_at: None,
            failure: None,
            counter,
            share: None,
        })
    }

    /// Moves what can be moved.
    pub fn drive(&mut self, connection: &mut Connection, now: Instant, limit: Option<&mut Limit>) {
        if !self.opened {
            self.opened = true;
            connection.outgoing().open_stream(BACK);
        }
        self.take_back(connection.incoming());
        self.hand_over(connection.incoming(), now, limit);
        self.report(connection.outgoing());
        if self.summary.is_some() && self.reports.is_empty() && self.done_at.is_none() {
            connection.outgoing().finish(BACK);
            connection.finishing();
            self.done_at = Some(now);
        }
    }

    /// Tells the sender how many bytes per second it may send at most; 0: as many as it likes. One of a stream is not told: flow
    /// control holds it.
    pub fn limit_to(&mut self, bytes_per_second: u64) {
        if !self.is_pipe && self.summary.is_none() {
            self.share = Some(bytes_per_second).filter(|share| *share > 0);
            Report::Limit { bytes_per_second }.encode(&mut self.reports);
        }
    }

    /// Which it is, counted since the receiver began; the same for each try.
    pub const fn number(&self) -> u32 {
        self.which.number
    }

    /// Since when nothing is left to do but to hear the sender's goodbye.
    pub const fn done_at(&self) -> Option<Instant> {
        self.done_at
    }

    /// Why it cannot go on, once.
    pub const fn failure(&mut self) -> Option<Failure> {
        self.failure.take()
    }

    /// How far it is, now and then.
    pub fn look(
        &mut self,
        connection: &mut Connection,
        locals: &[SocketAddr],
        now: Instant,
    ) -> Option<Tally> {
        if !self.counter.is_due(now) {
            return None;
        }
        let amount = self.amount(connection.incoming().received());
        // What this side sends are acknowledgements: nobody waits for them, nor wants to see them.
        let tally = self.counter.look_at_arrivals(now, connection, locals, amount);
        let full = |share: u64| tally.rate_bps >= share as f64 * 8.0 * FULL;
        let pause = self.share.is_some_and(full).then_some(Pause::BandwidthLimit);
        Some(Tally { pause, origin: Some(self.origin()), ..tally })
    }

    /// How much is done when so many bytes of the stream and of files were received.
    fn amount(&self, received: u64) -> Amount {
        if self.is_pipe {
            return Amount { bytes: received, travelled: received, total: None };
        }
        let summary = self.summary.unwrap_or_else(|| self.seen.summary());
        // What the sender said, unless it sends more.
        let total = summary.total.map(|total| total.max(summary.announced.bytes));
        Amount::of_tree(received.saturating_sub(self.manifest), summary.skipped, total)
    }

    fn origin(&self) -> Origin {
        Origin { transfer: self.which.number, from: self.which.peer.to_string(), name: self.seen.name() }
    }

    /// Who sends it.
    pub const fn peer(&self) -> PublicKey {
        self.which.peer
    }

    /// Whether this is a try of the same transfer.
    pub fn is(&self, peer: PublicKey, transfer: [u8; 16]) -> bool {
        (self.which.peer, self.which.transfer) == (peer, transfer)
    }

    /// Ends it early: what has arrived is written by the thread that writes, whose end can be waited for.
    pub fn leave(self, incoming: Option<&mut Incoming>) -> Receiver<Poured> {
        if let Some(incoming) = incoming.filter(|_| !self.is_pipe) {
            incoming.flush();
            let held = self.tasks.into_held().into_iter().filter_map(|task| match task {
                Task::Write(write) => Some(write),
                _ => None,
            });
            // Whoever does not take it has failed, and said so.
            let _ = self.rest.send(held.chain(std::iter::from_fn(|| incoming.next_write())).collect());
        }
        self.writer
    }

    /// How it ended, when so many bytes of the stream and of files were received.
    pub fn end(
        &self,
        outcome: Result<(), Failure>,
        confirmed: bool,
        received: u64,
        now: Instant,
    ) -> Received {
        let summary = self.summary.unwrap_or_else(|| self.seen.summary());
        let (announced, amount) = (summary.announced, self.amount(received));
        let broken_off = self.summary.is_none();
        let entries = match self.is_pipe || broken_off {
            true => summary.files,
            false => {
                (announced.files + announced.directories + announced.symlinks).saturating_sub(summary.failed)
            }
        };
        let seconds = self.done_at.map_or_else(|| self.counter.seconds(now), |at| self.counter.seconds(at));
        Received {
            outcome,
            confirmed,
            peer: self.which.peer,
            origin: self.origin(),
            // Nobody can tell what of a stream that broke off its reader has kept.
            bytes: if self.is_pipe && broken_off { amount.bytes } else { summary.bytes },
            kept: summary.kept,
            entries,
            failed: summary.failed,
            seconds,
            broken_off: (broken_off && !self.is_pipe).then_some(BrokenOff {
                arrived: amount.bytes,
                travelled: amount.travelled,
                total: amount.total,
            }),
            paths: self.counter.arrivals(),
        }
    }

    /// What the disk thread gives back.
    fn take_back(&mut self, incoming: &mut Incoming) {
        while self.reports.len() < REPORTS {
            match self.back.try_recv() {
                Ok(Back::Buffer(buffer)) => incoming.written(buffer),
                Ok(Back::Reports(bytes)) => self.reports.extend(bytes),
                Ok(Back::Forget(object)) => incoming.forget_object(object),
                Ok(Back::Done(summary, bytes)) => {
                    self.summary = Some(summary);
                    self.reports.extend(bytes);
                }
                Ok(Back::Failed(failure)) => self.failure = Some(failure),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    if self.summary.is_none() && self.failure.is_none() {
                        let sentence = "the thread that writes broke down";
                        self.failure = Some(Failure::new(Exit::Error, sentence));
                    }
                    return;
                }
            }
        }
    }

    /// What arrived goes to the disk thread, as far as there is room: what stays slows the sender down.
    fn hand_over(&mut self, incoming: &mut Incoming, now: Instant, mut limit: Option<&mut Limit>) {
        let allows = |limit: &mut Option<&mut Limit>| limit.as_mut().is_none_or(|it| it.allows(now));
        let spend = |limit: &mut Option<&mut Limit>, bytes| limit.iter_mut().for_each(|it| it.spend(bytes));
        while !self.read && self.tasks.has_room() && allows(&mut limit) {
            self.piece.resize(PIECE, 0);
            let Some(read) = incoming.read(FORTH, &mut self.piece) else { break };
            self.read = read.finished;
            if read.length > 0 {
                spend(&mut limit, read.length);
                self.manifest += if self.is_pipe { 0 } else { read.length as u64 };
                self.tasks.post(Task::Bytes(cut(&mut self.piece, read.length)));
            } else if !read.finished {
                break;
            }
        }
        if self.is_pipe {
            if self.read && !self.ended && self.tasks.has_room() {
                self.ended = true;
                self.tasks.post(Task::End);
            }
            while incoming.next_event().is_some() {}
            return;
        }
        while self.tasks.has_room() {
            let mut handful = Vec::with_capacity(HANDFUL);
            while handful.len() < HANDFUL {
                // Ends before more bytes: a file that is whole is put in place while all of it is at hand, and not when everything has arrived.
                if let Some(event) = incoming.next_event() {
                    if let InEvent::ObjectComplete { id, .. } = event {
                        handful.push(Task::Complete(id));
                    }
                    continue;
                }
                if !allows(&mut limit) {
                    break;
                }
                let Some(write) = incoming.next_write() else { break };
                spend(&mut limit, write.data.len());
                handful.push(Task::Write(write));
            }
            if handful.is_empty() {
                break;
            }
            self.tasks.post_all(handful);
        }
    }

    fn report(&mut self, out: &mut Outgoing) {
        while out.next_event().is_some() {}
        if !self.reports.is_empty() {
            let taken = out.write(BACK, &self.reports);
            self.reports.drain(..taken);
        }
    }
}

/// The first `length` bytes of a piece: with its memory, which is missed then, if they fill most of it.
fn cut(piece: &mut Vec<u8>, length: usize) -> Vec<u8> {
    if length > PIECE / 2 {
        piece.truncate(length);
        return std::mem::take(piece);
    }
    piece.get(..length).unwrap_or_default().to_vec()
}
