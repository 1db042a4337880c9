//! One transfer on its way in, as the receiver's owner keeps it.

use crate::disk::file_writer::{
    DiskChannels, DiskEvent, DiskTask, MAX_QUEUED_TASKS, PipeTotal, WriteProgress, look_at_tree, write_pipe,
    write_tree,
};
use crate::disk::thread_channel::{BatchSender, batch_channel};
use crate::endpoint::{RECEIVER_STREAM, SENDER_STREAM};
use crate::error::TransferError;
use crate::event_loop::news_channel::NewsSender;
use crate::events::TransferEvent;
use crate::identity::PublicKey;
use crate::limits::receive_limit::ReceiveLimit;
use crate::progress::limiting_factor::PauseReason;
use crate::progress::{ProgressCounter, TransferAmount, TransferId, TransferProgress};
use crate::receiver::received_output::{Destination, PartialTransfer, ReceivedTransfer};
use crate::session_seats::Seat;
use crate::warnings::Warnings;
use byway_engine::data::{InEvent, Incoming, Outgoing, WriteRequest};
use byway_engine::{Connection, Handle};
use byway_files::{Report, Subdirectory, Summary};
use byway_net::Waker;
use byway_wire::{Duration, Instant, NetworkPrefix};
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel, sync_channel};
use std::thread::Builder;

/// Bytes of a stream handed over at once.
const PIECE_BYTES: usize = 64 << 10;
/// Tasks handed over at once, mostly.
const TASK_BATCH: usize = 32;
/// The part of its share of the receiver's limit from which a transfer counts as held up by the
/// limit.
const USED_SHARE_THRESHOLD: f64 = 0.75;
/// The silence after its start with which a transfer may lose its place to another transfer.
/// Senders send at once.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of reports that wait for the sender. At this number, incoming data wait too.
const MAX_QUEUED_REPORT_BYTES: usize = 1 << 20;

/// Identifies one of a receiver's transfers.
#[derive(Clone, Copy)]
pub(crate) struct InboundId {
    /// The transfer's number, counted since the receiver began.
    pub number: u32,
    /// The sender's public key.
    pub peer: PublicKey,
    /// The sender's random id of the transfer, the same in each try.
    pub transfer: [u8; 16],
}

/// A transfer that is being received.
pub(crate) struct Inbound {
    id: InboundId,
    /// The network of the sender's host. `None`: it is this host.
    network: Option<NetworkPrefix>,
    came_at: Instant,
    is_pipe: bool,
    /// Whether the sender runs a dry run.
    is_look: bool,
    /// Receives the bytes that were not handed to the disk thread when the transfer ends early.
    rest: Sender<Vec<WriteRequest>>,
    /// Closed when the thread that writes has ended.
    writer: Receiver<PipeTotal>,
    tasks: BatchSender<DiskTask>,
    back: Receiver<DiskEvent>,
    reports: Vec<u8>,
    /// The buffer into which the stream is read.
    piece: Vec<u8>,
    opened: bool,
    /// Bytes of the manifest.
    manifest: u64,
    /// The progress of the thread that writes.
    progress: WriteProgress,
    /// Whether the stream from the sender has ended.
    read: bool,
    /// The end of a pipe was handed over.
    ended: bool,
    summary: Option<Summary>,
    done_at: Option<Instant>,
    failure: Option<TransferError>,
    counter: ProgressCounter,
    /// The sender's share of the receiver's rate limit, in bytes per second.
    share: Option<u64>,
}

impl Inbound {
    /// Starts the thread that writes, below a directory of the destination if there is one.
    pub fn start(
        (destination, below): (&Destination, Option<&Subdirectory>),
        (id, network, is_look): (InboundId, Option<NetworkPrefix>, bool),
        before: Option<Receiver<PipeTotal>>,
        now: Instant,
        news: &NewsSender<TransferEvent>,
        waker: &Waker,
    ) -> io::Result<Self> {
        // A piece of a stream is larger than most files, and counts for nothing once it was handed
        // over.
        let is_pipe = matches!(destination, Destination::Pipe(_));
        let (tasks, inbox) =
            batch_channel(if is_pipe { MAX_QUEUED_TASKS / 4 } else { MAX_QUEUED_TASKS / TASK_BATCH });
        let (give, back) = sync_channel(2 * MAX_QUEUED_TASKS);
        let (rest, left) = channel();
        let (end, writer) = sync_channel(1);
        let (waker, progress) = (waker.clone(), WriteProgress::default());
        let ends = DiskChannels {
            tasks: inbox,
            rest: left,
            before,
            ended: end,
            back: give,
            progress: progress.clone(),
            warnings: Warnings::new(news.clone()),
            waker,
        };
        let thread = Builder::new().name("byway write".into());
        match destination {
            Destination::Directory(directory) => {
                let (directory, below) = (directory.clone(), below.cloned());
                let write = move || match is_look {
                    true => look_at_tree(&directory, below.as_ref(), ends),
                    false => write_tree(&directory, below.as_ref(), id.transfer, ends),
                };
                thread.spawn(write)?;
            }
            Destination::Pipe(open) => {
                let open = *open;
                thread.spawn(move || write_pipe(open(), ends))?;
            }
        }
        let mut counter = ProgressCounter::default();
        counter.begin(now);
        Ok(Self {
            id,
            network,
            came_at: now,
            is_pipe,
            is_look,
            rest,
            writer,
            tasks,
            back,
            reports: Vec::new(),
            piece: Vec::new(),
            opened: false,
            manifest: 0,
            progress,
            read: false,
            ended: false,
            summary: None,
            done_at: None,
            failure: None,
            counter,
            share: None,
        })
    }

    /// Returns the transfer's place among the transfers. A transfer from which nothing came for
    /// long counts as silent.
    pub fn seat(&self, session: Handle, now: Instant) -> Seat<Handle> {
        let is_silent = self.manifest == 0 && !self.read && now.since(self.came_at) >= SILENCE_TIMEOUT;
        Seat { session, network: self.network, is_silent, came_at: self.came_at }
    }

    /// Moves bytes between the connection and the disk thread, as far as possible without waiting.
    pub fn drive(&mut self, connection: &mut Connection, now: Instant, limit: Option<&mut ReceiveLimit>) {
        if !self.opened {
            self.opened = true;
            connection.outgoing().open_stream(RECEIVER_STREAM);
        }
        self.take_back(connection.incoming());
        self.hand_over(connection.incoming(), now, limit);
        self.report(connection.outgoing());
        if self.summary.is_some() && self.reports.is_empty() && self.done_at.is_none() {
            connection.outgoing().finish(RECEIVER_STREAM);
            connection.finishing();
            self.done_at = Some(now);
        }
    }

    /// Tells the sender how many bytes per second it may send at most, if that is another number
    /// than before; 0: no limit. The sender of a stream is not told, because flow control limits
    /// it.
    pub fn limit_to(&mut self, bytes_per_second: u64) {
        let share = Some(bytes_per_second).filter(|share| *share > 0);
        if !self.is_pipe && self.summary.is_none() && share != self.share {
            self.share = share;
            Report::Limit { bytes_per_second }.encode(&mut self.reports);
        }
    }

    /// The transfer's number, counted since the receiver began. Each try of it has the same.
    pub const fn number(&self) -> u32 {
        self.id.number
    }

    /// Whether the sender runs a dry run, so that nothing is received.
    pub const fn is_look(&self) -> bool {
        self.is_look
    }

    /// Returns the time since which only the sender's CLOSE is missing.
    pub const fn done_at(&self) -> Option<Instant> {
        self.done_at
    }

    /// Returns why the transfer cannot go on. Each failure is returned once.
    pub const fn failure(&mut self) -> Option<TransferError> {
        self.failure.take()
    }

    /// Returns the progress, if the next report is due.
    pub fn look(
        &mut self,
        connection: &mut Connection,
        locals: &[SocketAddr],
        now: Instant,
    ) -> Option<TransferProgress> {
        if !self.counter.is_due(now) {
            return None;
        }
        let amount = self.amount(connection.incoming().received());
        // What this side sends are acknowledgements: nobody waits for them, nor wants to see them.
        let tally = self.counter.look_at_arrivals(now, connection, locals, amount);
        let full = |share: u64| tally.rate_bps >= share as f64 * 8.0 * USED_SHARE_THRESHOLD;
        let pause = self.share.is_some_and(full).then_some(PauseReason::BandwidthLimit);
        Some(TransferProgress { pause, origin: Some(self.origin()), ..tally })
    }

    /// Returns the transfer's amounts, of which `received` bytes of the stream and of files have
    /// arrived.
    fn amount(&self, received: u64) -> TransferAmount {
        if self.is_pipe {
            return TransferAmount { bytes: received, travelled: received, total: None };
        }
        let summary = self.summary.unwrap_or_else(|| self.progress.summary());
        // What the sender said, unless it sends more.
        let total = summary.total.map(|total| total.max(summary.announced.bytes));
        TransferAmount::of_tree(received.saturating_sub(self.manifest), summary.skipped, total)
    }

    fn origin(&self) -> TransferId {
        TransferId { transfer: self.id.number, from: self.id.peer, name: self.progress.name() }
    }

    /// Enters the last figures of each path, before the connection is gone.
    pub fn settle(&mut self, connection: &Connection, locals: &[SocketAddr], now: Instant) {
        self.counter.settle_arrivals(now, connection, locals);
    }

    /// The sender's public key.
    pub const fn peer(&self) -> PublicKey {
        self.id.peer
    }

    /// Whether this sender sends the transfer.
    pub fn is_of(&self, sender: PublicKey) -> bool {
        self.id.peer == sender
    }

    /// Whether the transfer has this sender and id.
    pub fn is(&self, peer: PublicKey, transfer: [u8; 16]) -> bool {
        (self.id.peer, self.id.transfer) == (peer, transfer)
    }

    /// Ends the transfer early. The disk thread still writes the data that arrived; the returned
    /// receiver is closed when it is done.
    pub fn leave(self, incoming: Option<&mut Incoming>) -> Receiver<PipeTotal> {
        if let Some(incoming) = incoming.filter(|_| !self.is_pipe) {
            incoming.flush();
            let held = self.tasks.into_held().into_iter().filter_map(|task| match task {
                DiskTask::Write(write) => Some(write),
                _ => None,
            });
            // Whoever does not take it has failed, and said so.
            let _ = self.rest.send(held.chain(std::iter::from_fn(|| incoming.next_write())).collect());
        }
        self.writer
    }

    /// The result of the transfer. `received`: bytes of the stream and of files that arrived.
    pub fn end(
        &self,
        outcome: Result<(), TransferError>,
        confirmed: bool,
        received: u64,
        now: Instant,
    ) -> ReceivedTransfer {
        let summary = self.summary.unwrap_or_else(|| self.progress.summary());
        let (announced, amount) = (summary.announced, self.amount(received));
        let broken_off = self.summary.is_none();
        let entries = match self.is_pipe || broken_off {
            true => summary.files,
            false => {
                (announced.files + announced.directories + announced.symlinks).saturating_sub(summary.failed)
            }
        };
        let seconds = self.done_at.map_or_else(|| self.counter.seconds(now), |at| self.counter.seconds(at));
        ReceivedTransfer {
            outcome,
            confirmed,
            is_partial: false,
            origin: self.origin(),
            // Nobody can tell what of a stream that broke off its reader has kept.
            bytes: if self.is_pipe && broken_off { amount.bytes } else { summary.bytes },
            kept: summary.kept,
            unchanged: summary.unchanged,
            entries,
            failed: summary.failed,
            deleted: summary.deleted,
            undeleted: summary.undeleted,
            trash: summary.trash,
            seconds,
            broken_off: (broken_off && !self.is_pipe).then_some(PartialTransfer {
                arrived: amount.bytes,
                travelled: amount.travelled,
                total: amount.total,
            }),
            paths: self.counter.arrivals(),
        }
    }

    /// Takes events and buffers back from the disk thread.
    fn take_back(&mut self, incoming: &mut Incoming) {
        while self.reports.len() < MAX_QUEUED_REPORT_BYTES {
            match self.back.try_recv() {
                Ok(DiskEvent::Buffer(buffer)) => incoming.written(buffer),
                Ok(DiskEvent::Reports(bytes)) => self.reports.extend(bytes),
                Ok(DiskEvent::Forget(object)) => incoming.forget_object(object),
                Ok(DiskEvent::Done(summary, bytes)) => {
                    self.summary = Some(summary);
                    self.reports.extend(bytes);
                }
                Ok(DiskEvent::Failed(error)) => self.failure = Some(error),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    if self.summary.is_none() && self.failure.is_none() {
                        self.failure = Some(TransferError::ThreadDied("writes"));
                    }
                    return;
                }
            }
        }
    }

    /// Hands received data to the disk thread as far as it has room. Data that wait for room slow
    /// the sender down.
    fn hand_over(&mut self, incoming: &mut Incoming, now: Instant, mut limit: Option<&mut ReceiveLimit>) {
        let allows = |limit: &mut Option<&mut ReceiveLimit>| limit.as_mut().is_none_or(|it| it.allows(now));
        let spend =
            |limit: &mut Option<&mut ReceiveLimit>, bytes| limit.iter_mut().for_each(|it| it.spend(bytes));
        while !self.read && self.tasks.has_room() && allows(&mut limit) {
            self.piece.resize(PIECE_BYTES, 0);
            let Some(read) = incoming.read(SENDER_STREAM, &mut self.piece) else { break };
            self.read = read.finished;
            if read.length > 0 {
                spend(&mut limit, read.length);
                self.manifest += if self.is_pipe { 0 } else { read.length as u64 };
                self.tasks.send(DiskTask::Bytes(cut(&mut self.piece, read.length)));
            } else if !read.finished {
                break;
            }
        }
        if self.is_pipe {
            if self.read && !self.ended && self.tasks.has_room() {
                self.ended = true;
                self.tasks.send(DiskTask::End);
            }
            while incoming.next_event().is_some() {}
            return;
        }
        while self.tasks.has_room() {
            let mut batch = Vec::with_capacity(TASK_BATCH);
            while batch.len() < TASK_BATCH {
                // Ends before more bytes: a whole file is put in place while all of it is at hand.
                if let Some(event) = incoming.next_event() {
                    if let InEvent::ObjectComplete { id, .. } = event {
                        batch.push(DiskTask::Complete(id));
                    }
                    continue;
                }
                if !allows(&mut limit) {
                    break;
                }
                let Some(write) = incoming.next_write() else { break };
                spend(&mut limit, write.data.len());
                batch.push(DiskTask::Write(write));
            }
            if batch.is_empty() {
                break;
            }
            self.tasks.send_all(batch);
        }
    }

    fn report(&mut self, out: &mut Outgoing) {
        while out.next_event().is_some() {}
        if !self.reports.is_empty() {
            let taken = out.write(RECEIVER_STREAM, &self.reports);
            self.reports.drain(..taken);
        }
    }
}

/// The first `length` bytes of a piece: with its memory, which is missed then, if they fill most of
/// it.
fn cut(piece: &mut Vec<u8>, length: usize) -> Vec<u8> {
    if length > PIECE_BYTES / 2 {
        piece.truncate(length);
        return std::mem::take(piece);
    }
    piece.get(..length).unwrap_or_default().to_vec()
}
