//! The connection to a target, as the stream with which a program's connection is joined. What is
//! written to it is leased from the uplink. What comes from it is read as it comes.

use crate::kernel_stamps;
use crate::uplink::{TargetAcknowledged, Uplink};
use crate::write_ledger::{LedgerEvent, WriteLedger};
use byway_engine::data::StreamRead;
use byway_forward::splice::{IoResult, Local as _, SplicedStream};
use byway_forward_host::nonblocking_tcp::Tcp;
use byway_wire::{Duration, Instant};
use std::io;
use std::net::IpAddr;

/// Bytes of the smallest segment, whatever a kernel says: the least that IPv4 lets a host ask for,
/// less the headers (RFC 9293, section 3.7.1).
const MIN_SEGMENT_LEN: usize = 536;
/// If nothing of a connection is acknowledged for this time, its bytes no longer count as in
/// flight: its target is gone, or a stamp was lost.
const SILENCE_TIME: Duration = Duration::from_secs(3);

/// A connection to a target.
#[derive(Debug)]
pub(crate) struct PacedTarget {
    tcp: Tcp,
    address: IpAddr,
    /// Bytes of a full segment.
    segment: usize,
    ledger: WriteLedger,
    /// Bytes that the full socket refused.
    refused: Vec<u8>,
    /// Whether the latest segment is the first of two, of which the second has its ACK at once.
    is_mid_pair: bool,
    /// Whether the stream ends after `refused`.
    ends: bool,
}

/// Why a connection wrote no more in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteLimit {
    /// It had no more to write, or was not asked.
    Program,
    /// The uplink leases nothing now.
    Uplink,
    /// Its kernel holds back what was written, or its socket is full.
    Kernel,
}

impl PacedTarget {
    /// A connection that was just established.
    ///
    /// # Errors
    /// The system does not stamp what the connection sends, or the connection is broken.
    pub fn new(tcp: Tcp) -> io::Result<Self> {
        kernel_stamps::begin(&tcp)?;
        let segment = kernel_stamps::segment_len(&tcp)?.max(MIN_SEGMENT_LEN);
        let address = tcp.peer().ok_or(io::ErrorKind::NotConnected)?.ip().to_canonical();
        Ok(Self {
            tcp,
            address,
            segment,
            ledger: WriteLedger::default(),
            refused: Vec::new(),
            is_mid_pair: false,
            ends: false,
        })
    }

    /// Reads the kernel's stamps. What was acknowledged is added to `runs`.
    pub fn read_stamps(&mut self, uplink: &mut Uplink, runs: &mut Vec<TargetAcknowledged>, now: Instant) {
        let (ledger, target, segment) = (&mut self.ledger, self.address, self.segment);
        kernel_stamps::read(&self.tcp, |stamp| match ledger.on_stamp(stamp) {
            Some(LedgerEvent::Acknowledged(acknowledged)) => {
                runs.push(TargetAcknowledged { target, segment, acknowledged });
            }
            Some(LedgerEvent::Sent(bytes)) => uplink.on_sent(bytes, segment, now),
            Some(LedgerEvent::Lost { bytes, written_at }) => uplink.on_lost(bytes, written_at, now),
            None => {}
        });
    }

    /// The target's address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bytes of a full segment.
    pub const fn segment(&self) -> usize {
        self.segment
    }

    /// Whether the next run is the second of two that belong together.
    pub const fn is_mid_pair(&self) -> bool {
        self.is_mid_pair
    }

    /// When the connection must be [looked at](Self::on_time) again.
    pub fn silent_at(&self) -> Option<Instant> {
        self.ledger.oldest().map(|oldest| oldest + SILENCE_TIME)
    }

    /// Gives up waiting for stamps that do not come.
    pub fn on_time(&mut self, uplink: &mut Uplink, now: Instant) {
        if self.silent_at().is_some_and(|at| at <= now) {
            uplink.on_forgotten(self.ledger.forget());
        }
    }

    /// Writes what the socket refused before. Returns whether all is written.
    pub fn flush(&mut self, uplink: &mut Uplink, now: Instant) -> bool {
        if !self.refused.is_empty() {
            let refused = std::mem::take(&mut self.refused);
            self.put(&refused, uplink, now);
        }
        self.refused.is_empty()
    }

    /// Writes bytes, and keeps what the socket refuses.
    fn put(&mut self, bytes: &[u8], uplink: &mut Uplink, now: Instant) {
        let IoResult::Done(length) = self.tcp.write(bytes) else {
            // Full, or broken: a broken one tells so when it is read.
            self.refused.extend_from_slice(bytes);
            return;
        };
        self.is_mid_pair = length == self.segment && !self.is_mid_pair;
        if length > 0 {
            self.ledger.on_written(length, uplink.written_context(now));
        }
        self.refused.extend_from_slice(bytes.get(length..).unwrap_or_default());
        if self.refused.is_empty() && self.ends {
            self.tcp.finish();
        }
    }

    /// Whether all was handed to the kernel.
    pub fn is_flushed(&self) -> bool {
        self.refused.is_empty()
    }

    /// Ends the accounts of a connection that is over.
    pub fn leave(self, uplink: &mut Uplink) {
        uplink.on_forgotten(self.ledger.in_flight());
    }

    /// Whether the connection has an error.
    pub fn is_broken(&self) -> bool {
        self.tcp.is_broken()
    }
}

/// A target in its turn. [`settle`](Self::settle) ends the turn.
pub(crate) struct PacedStream<'a> {
    target: &'a mut PacedTarget,
    uplink: &'a mut Uplink,
    now: Instant,
    /// Whether a run may be leased: one a turn, so that connections take turns.
    may_lease: bool,
    leased: usize,
    limit: WriteLimit,
}

impl<'a> PacedStream<'a> {
    /// `may_lease`: whether it is this connection's turn to write.
    pub fn new(target: &'a mut PacedTarget, uplink: &'a mut Uplink, may_lease: bool, now: Instant) -> Self {
        Self { target, uplink, now, may_lease, leased: 0, limit: WriteLimit::Program }
    }

    /// Gives back what was leased and not written. Returns why no more was written.
    pub fn settle(self) -> WriteLimit {
        self.uplink.give_back(self.leased);
        self.limit
    }
}

impl SplicedStream for PacedStream<'_> {
    fn room(&mut self, wanted: usize) -> usize {
        if !self.target.flush(self.uplink, self.now) || self.target.ledger.is_held_back() {
            self.limit = WriteLimit::Kernel;
            return 0;
        }
        if self.leased == 0 {
            self.leased = if std::mem::take(&mut self.may_lease) {
                self.uplink.lease(self.target.segment, self.now)
            } else {
                0
            };
        }
        if self.leased == 0 {
            self.limit = WriteLimit::Uplink;
        }
        self.leased.min(wanted)
    }

    fn write(&mut self, bytes: &[u8]) {
        self.leased = self.leased.saturating_sub(bytes.len());
        // The rest of the lease is given back, and not used for a short run.
        self.uplink.give_back(std::mem::take(&mut self.leased));
        self.target.put(bytes, self.uplink, self.now);
    }

    fn finish(&mut self) {
        self.target.ends = true;
        if self.target.is_flushed() {
            self.target.tcp.finish();
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Option<StreamRead> {
        match self.target.tcp.read(buffer) {
            IoResult::Done(length) => {
                Some(StreamRead { length, finished: length == 0 && !buffer.is_empty() })
            }
            IoResult::Later => Some(StreamRead { length: 0, finished: false }),
            IoResult::Broken => None,
        }
    }

    fn take(&mut self) -> Option<(Vec<u8>, StreamRead)> {
        Some((Vec::new(), StreamRead { length: 0, finished: false }))
    }

    fn give_back(&mut self, _: Vec<u8>) {}

    fn reset(&mut self, _: u64) {
        self.target.tcp.abort();
    }
}
