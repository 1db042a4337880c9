//! Sessions between hosts that live as hosts do: they restart, sleep, move, and read slowly.

use byway_engine::path_choice::PathRule;
use byway_wire::Duration;

/// The data that two hosts exchange over byway's engine, and the properties of these hosts. The
/// sender begins another session when one is lost, until all is done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExchangeOptions {
    /// Bytes of each object that the sender has for the receiver; 0: an empty object.
    pub objects: Vec<u64>,
    /// Number of objects that the receiver has on its disk before the transfer begins.
    pub objects_present: usize,
    /// Bytes of each object that the receiver has for the sender.
    pub objects_back: Vec<u64>,
    /// Streams that the sender opens in every session.
    pub streams: Vec<StreamSetup>,
    /// Number of unreliable datagrams that each host sends to the other.
    pub datagrams: u32,
    /// Bits per second at which the application writes streams. `None`: as fast as they take it.
    pub writes: Option<u64>,
    /// Bits per second that the receiver's application takes. `None`: whatever has come.
    pub reads: Option<u64>,
    /// Bytes of the receiver's flow control window. `None`: the engine's own.
    pub memory: Option<u64>,
    /// The largest datagram size, in bytes, that path MTU discovery tries. `None`: all datagrams
    /// have the base size.
    pub datagram: Option<usize>,
    /// The rule of others by which the sender chooses the path of each packet. `None`: byway's own.
    pub path_rule: Option<PathRule>,
    /// Whether hosts and relays also carry datagrams over TCP, and dial where UDP brings no answer.
    pub tcp: bool,
    /// Nodes at which the sender has one more local address each.
    pub uplinks: Vec<String>,
    /// Whether the receiver's ticket names the relays. If not, the sender offers them over the
    /// direct route.
    pub ticket_names_relays: bool,
    /// The validity of the relay words. `None`: longer than the run.
    pub words_hold: Option<Duration>,
    /// The sender's clock.
    pub sender_clock: ClockSetup,
    /// The receiver's clock.
    pub receiver_clock: ClockSetup,
}

impl ExchangeOptions {
    /// Bytes that the receiver has when all is done, of objects and of streams that are not reset.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let whole = self.streams.iter().filter(|stream| stream.reset_after.is_none());
        self.objects.iter().sum::<u64>() + whole.map(|stream| stream.bytes).sum::<u64>()
    }
}

/// A stream of an exchange. Each side ends its own direction in order, as programs over TCP do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSetup {
    /// Bytes that the sender writes.
    pub bytes: u64,
    /// Bytes of the answer.
    pub answer: u64,
    /// Whether the answer begins only after the end of the request.
    pub in_turn: bool,
    /// The number of bytes after which the sender resets the stream. `None`: it does not.
    pub reset_after: Option<u64>,
}

/// The difference between a host's clock and the world's time. The clock never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockSetup {
    /// The clock's lead when the run begins.
    pub ahead: Duration,
    /// Parts per million by which the clock runs fast. Negative: slow.
    pub drift_ppm: f64,
    /// The time at which the clock jumps ahead, and the size of the jump. `None`: it does not jump.
    pub step: Option<(Duration, Duration)>,
}

/// Either end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndChoice {
    /// The host that has most of the data.
    Sender,
    /// The receiving host.
    Receiver,
}

/// A change at an end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndChange {
    /// The process ends, and a new one starts at once with the state on the disk.
    Restart,
    /// The host is suspended (`true`) or resumed.
    Freeze(bool),
    /// The socket with this number goes down or up.
    Socket {
        /// The number of the local address.
        number: u16,
        /// Whether the socket is up from then on.
        up: bool,
    },
    /// A NAT gives the host's first socket another port.
    Rebind,
    /// A NAT before the first socket lets in only replies (`true`), or all packets.
    NatFilter(bool),
    /// The first socket gets another address, and the host is notified.
    Move,
    /// The application reads (`true`), or takes nothing.
    Reads(bool),
    /// All TCP connections of the host are reset.
    Reset,
}

/// UDP datagrams that a middlebox drops on a link, in that direction. Other packets pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UdpFilter {
    /// The probability that a datagram is dropped, 0 to 1.
    pub share: f64,
    /// Smaller UDP payloads pass, in bytes.
    pub above: usize,
}

/// The actions of an attacker who sees all datagrams of exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attack {
    /// The probability that a datagram arrives once more, up to two seconds later.
    pub replayed: f64,
    /// The probability that a datagram with some other bits, and of some other length, arrives too.
    pub forged: f64,
}
