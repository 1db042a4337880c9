//! A target's addresses, dialled in turn until one answers.

use crate::nonblocking_tcp::Tcp;
use byway_forward::stream_request::Refusal;
use byway_net::{Token, Watch};
use byway_wire::{Duration, Instant};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::vec::IntoIter;

/// Time that an address may take to accept the connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The progress of dialling.
pub enum Dialled {
    /// Dialling continues. The present address is given up at this time.
    Goes(Instant),
    /// A target address accepted the connection.
    Connected(Tcp),
    /// No address accepted. The reason is that of the first address.
    Failed(Refusal),
}

/// A target that is dialled.
#[derive(Debug)]
pub struct Dial {
    addresses: IntoIter<SocketAddr>,
    max_segment: Option<u32>,
    now: Option<Tcp>,
    refusal: Option<Refusal>,
}

impl Dial {
    /// Makes a dial of these addresses, in their order.
    #[must_use]
    pub fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses: addresses.into_iter(), max_segment: None, now: None, refusal: None }
    }

    /// Neither side sends more than this number of bytes in a segment.
    #[must_use]
    pub fn with_max_segment(self, bytes: u32) -> Self {
        Self { max_segment: Some(bytes), ..self }
    }

    /// Begins with the first address.
    pub fn begin(&mut self, watch: &Watch, token: Token, now: Instant) -> Dialled {
        while let Some(address) = self.addresses.next() {
            match Tcp::dial(address, self.max_segment).and_then(|tcp| watch.add(&tcp, token).map(|()| tcp)) {
                Ok(tcp) => {
                    self.now = Some(tcp);
                    return Dialled::Goes(now + DIAL_TIMEOUT);
                }
                Err(error) => self.note(refusal_of(&error)),
            }
        }
        Dialled::Failed(self.refusal.unwrap_or(Refusal::Failed))
    }

    /// Handles an event of the socket. `None`: there is no progress.
    pub fn look(&mut self, watch: &Watch, token: Token, now: Instant) -> Option<Dialled> {
        let tcp = self.now.take()?;
        match tcp.connected() {
            Ok(true) => Some(Dialled::Connected(tcp)),
            Ok(false) => {
                self.now = Some(tcp);
                None
            }
            Err(error) => {
                drop(tcp);
                self.note(refusal_of(&error));
                Some(self.begin(watch, token, now))
            }
        }
    }

    /// The address does not answer in time.
    pub fn time_is_up(&mut self, watch: &Watch, token: Token, now: Instant) -> Dialled {
        self.now = None;
        self.note(Refusal::Timeout);
        self.begin(watch, token, now)
    }

    const fn note(&mut self, refusal: Refusal) {
        if self.refusal.is_none() {
            self.refusal = Some(refusal);
        }
    }
}

/// The refusal to report for an error of connecting to a target.
fn refusal_of(error: &io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Refusal::Refused,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            Refusal::Unreachable
        }
        ErrorKind::AddrNotAvailable => Refusal::Unreachable,
        ErrorKind::TimedOut => Refusal::Timeout,
        _ if is_out_of_descriptors(error) => Refusal::Full,
        _ => Refusal::Failed,
    }
}

/// Whether the error says that this process, or the system, has too many files open.
#[must_use]
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
