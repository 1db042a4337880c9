//! The lines of the scoreboard, and the laws that it compares. A scene is a line
//! (bottleneck link), a foreground (the traffic of others) and background transfers. A law is the
//! background transfers' congestion control, over TCP or byway's own sessions.

use super::transfer_mix::TransferMix;
use core::fmt;

/// The rule by which the queue of a line drops packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// A packet that finds the queue full is dropped.
    DropTail,
    /// CoDel, RFC 8289: 5 ms and 100 ms.
    Codel,
    /// FQ-CoDel, RFC 8290, with the same.
    FqCodel,
    /// RED, gentle, thresholds at a sixth and a half of the queue.
    Red,
}

/// How the rate of a line changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProfile {
    /// The rate never changes.
    Steady,
    /// Every 100 ms another rate is drawn, uniformly between half of the full rate and the full
    /// rate. So it changes as in a Wi-Fi network, where stations come and go, and modulations
    /// change.
    Wifi,
    /// Every 500 ms the rate changes by up to a third, as in a radio cell with fading. It stays
    /// between a fifth of the full rate and the full rate.
    Lte,
    /// Every 100 ms the rate changes by up to a fifth, as a radio cell's scheduler gives and takes.
    /// It stays between three tenths of the full rate and the full rate.
    Cell,
}

/// The changes of a line's propagation delay, besides jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayProfile {
    /// The delay never changes.
    Steady,
    /// Once a second no packet arrives for 20 to 50 ms, and then all do, as when a Wi-Fi radio
    /// scans or repeats.
    Stalls,
    /// Every 100 ms the delay is another one, longer by 0 to 10 ms each way, as in a radio cell.
    Cell,
    /// Every 15 s the delay is another one, longer by 0 to 20 ms each way, as where another
    /// satellite takes over.
    Satellite,
}

/// The paths of a background transfer. The foreground traffic always takes the direct path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// The scene has the direct path only.
    One,
    /// The direct path and a path through a relay. Both share the line.
    TwoOverOne,
    /// The direct path and a path through a relay. The path through the relay has its own line with
    /// the same properties.
    TwoOverTwo,
    /// The direct path and a path through each of two relays. All three share the line.
    ThreeOverOne,
    /// The direct path and a path through each of two relays. Each path has its own line.
    ThreeOverThree,
    /// The network of mPath's figure 7: the direct path and paths through three relays, all behind
    /// one access line. One queue of 10 Mbit/s serves both the direct path and the first relay's.
    /// The second relay's path has 15 Mbit/s, the third's 5 Mbit/s.
    Mpath7,
}

impl Paths {
    /// Returns the number of lines.
    #[must_use]
    pub const fn lines(self) -> u32 {
        match self {
            Self::One | Self::TwoOverOne | Self::ThreeOverOne | Self::Mpath7 => 1,
            Self::TwoOverTwo => 2,
            Self::ThreeOverThree => 3,
        }
    }

    /// Whether there are several paths that together have no more capacity than one of them.
    #[must_use]
    pub const fn share_a_line(self) -> bool {
        matches!(self, Self::TwoOverOne | Self::ThreeOverOne)
    }
}

/// The half of the lines: a law's constants are chosen on one half, and judged on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineHalf {
    /// Constants may be chosen here.
    Tune,
    /// Constants are only judged here.
    Judge,
}

/// A line, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottleneck {
    /// Rate in Mbit/s, with headers; where it changes, the most it ever is.
    pub mbit: u32,
    /// Round-trip time of an empty line in milliseconds.
    pub rtt_ms: u32,
    /// Packets that may wait, the one being sent not counted.
    pub queue: u32,
    /// The rule by which the queue drops packets.
    pub queueing: Queueing,
    /// Tenths of a percent of the packets that are lost by chance, in each direction.
    pub loss: u32,
    /// Milliseconds by which each packet is late at most, each way; none overtakes another.
    pub jitter_ms: u32,
    /// How the rate changes.
    pub course: RateProfile,
    /// How the delay changes.
    pub delays: DelayProfile,
    /// Paths of background transfers.
    pub paths: Paths,
    /// The half to which the line belongs.
    pub half: LineHalf,
    /// Whether the quick form of the grid includes the line.
    pub quick: bool,
}

const fn line(mbit: u32, rtt_ms: u32, queue: u32, half: LineHalf) -> Bottleneck {
    Bottleneck {
        mbit,
        rtt_ms,
        queue,
        queueing: Queueing::DropTail,
        loss: 0,
        jitter_ms: 0,
        course: RateProfile::Steady,
        delays: DelayProfile::Steady,
        paths: Paths::One,
        half,
        quick: false,
    }
}

pub(super) const fn tune(mbit: u32, rtt_ms: u32, queue: u32) -> Bottleneck {
    line(mbit, rtt_ms, queue, LineHalf::Tune)
}

pub(super) const fn judge(mbit: u32, rtt_ms: u32, queue: u32) -> Bottleneck {
    line(mbit, rtt_ms, queue, LineHalf::Judge)
}

impl Bottleneck {
    const fn queueing(self, queueing: Queueing) -> Self {
        Self { queueing, ..self }
    }

    pub(super) const fn loss(self, loss: u32) -> Self {
        Self { loss, ..self }
    }

    pub(super) const fn jitter(self, jitter_ms: u32) -> Self {
        Self { jitter_ms, ..self }
    }

    pub(super) const fn course(self, course: RateProfile) -> Self {
        Self { course, ..self }
    }

    pub(super) const fn delays(self, delays: DelayProfile) -> Self {
        Self { delays, ..self }
    }

    pub(super) const fn paths(self, paths: Paths) -> Self {
        Self { paths, ..self }
    }

    const fn quick(self) -> Self {
        Self { quick: true, ..self }
    }

    /// Whether the line has only a rate, a delay and a drop-tail queue: no faults, and one path.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.queueing == Queueing::DropTail
            && self.loss == 0
            && self.jitter_ms == 0
            && self.course == RateProfile::Steady
            && self.delays == DelayProfile::Steady
            && self.paths == Paths::One
    }
}

/// Writes the line's name, as `10m-20ms-50p`, with its other properties.
impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}m-{}ms-{}p", self.mbit, self.rtt_ms, self.queue)?;
        match self.queueing {
            Queueing::DropTail => {}
            Queueing::Codel => write!(f, "-codel")?,
            Queueing::FqCodel => write!(f, "-fqcodel")?,
            Queueing::Red => write!(f, "-red")?,
        }
        if self.loss > 0 {
            write!(f, "-loss.{}", self.loss)?;
        }
        if self.jitter_ms > 0 {
            write!(f, "-jitter{}", self.jitter_ms)?;
        }
        match self.course {
            RateProfile::Steady => {}
            RateProfile::Wifi => write!(f, "-wifi")?,
            RateProfile::Lte => write!(f, "-lte")?,
            RateProfile::Cell => write!(f, "-cell")?,
        }
        match (self.delays, self.course) {
            (DelayProfile::Steady, _) | (DelayProfile::Cell, RateProfile::Cell) => {}
            (DelayProfile::Stalls, _) => write!(f, "-stalls")?,
            (DelayProfile::Cell, _) => write!(f, "-cell-delays")?,
            (DelayProfile::Satellite, _) => write!(f, "-satellite")?,
        }
        match self.paths {
            Paths::One => Ok(()),
            Paths::TwoOverOne => write!(f, "-2over1"),
            Paths::TwoOverTwo => write!(f, "-2over2"),
            Paths::ThreeOverOne => write!(f, "-3over1"),
            Paths::ThreeOverThree => write!(f, "-3over3"),
            Paths::Mpath7 => write!(f, "-mpath7"),
        }
    }
}

/// Every line, in the order of tables and pictures. Neighbours are of different halves where they
/// can be.
pub const GRID_LINES: &[Bottleneck] = &[
    // Thin.
    tune(1, 60, 10),
    judge(1, 60, 50).quick(),
    judge(1, 300, 25),
    tune(2, 40, 27),
    judge(2, 100, 17).quick(),
    tune(4, 20, 13),
    judge(4, 50, 50).quick(),
    tune(4, 150, 50),
    // As most are.
    judge(7, 30, 35).quick(),
    tune(10, 5, 16),
    judge(10, 20, 20),
    tune(10, 20, 50).quick(),
    judge(10, 100, 83).quick(),
    tune(10, 300, 125),
    judge(20, 40, 20),
    tune(30, 15, 37),
    judge(30, 30, 300).quick(),
    tune(50, 40, 167),
    judge(50, 100, 100),
    // Fast.
    tune(100, 20, 20),
    judge(100, 20, 50).quick(),
    tune(100, 20, 333),
    judge(100, 5, 42),
    tune(100, 100, 250),
    judge(300, 20, 100).quick(),
    tune(300, 60, 1500),
    judge(1000, 5, 100),
    tune(1000, 20, 333),
    judge(1000, 100, 2000),
    // Managed queues.
    tune(4, 50, 200).queueing(Queueing::Codel),
    judge(10, 20, 300).queueing(Queueing::Codel).quick(),
    tune(100, 20, 1000).queueing(Queueing::Codel),
    tune(10, 40, 1000).queueing(Queueing::FqCodel),
    judge(50, 20, 1000).queueing(Queueing::FqCodel),
    tune(10, 20, 50).queueing(Queueing::Red),
    judge(50, 40, 167).queueing(Queueing::Red),
    // Random loss.
    tune(10, 20, 50).loss(1),
    judge(10, 100, 83).loss(5).quick(),
    tune(100, 20, 167).loss(5),
    // Jitter.
    tune(10, 20, 50).jitter(1),
    judge(10, 20, 50).jitter(3).quick(),
    tune(10, 20, 50).jitter(8),
    judge(50, 40, 167).jitter(3),
    // Rates that change.
    judge(30, 10, 100).course(RateProfile::Wifi).quick(),
    tune(100, 20, 333).course(RateProfile::Wifi),
    tune(12, 50, 200).course(RateProfile::Lte),
    judge(40, 40, 400).course(RateProfile::Lte),
    // Two paths.
    tune(5, 40, 33).paths(Paths::TwoOverOne),
    judge(20, 30, 50).paths(Paths::TwoOverOne),
    tune(10, 20, 50).paths(Paths::TwoOverTwo).quick(),
    judge(50, 40, 167).paths(Paths::TwoOverTwo),
];

/// The foreground traffic on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreground {
    /// 20 KB over CUBIC, at times by chance: `lab harm`.
    Requests,
    /// A page of 30 objects of usual web sizes, over six connections at a time, with CUBIC.
    Page,
    /// A call: 50 packets of 200 bytes a second.
    Call,
    /// A chunk of a video every so often, over CUBIC.
    Video,
    /// One CUBIC flow that sends as fast as it can for a while.
    Cubic,
    /// One BBR that does.
    Bbr,
    /// The scene has no foreground traffic.
    Nobody,
}

impl Foreground {
    /// All foregrounds, in the order of tables and pictures.
    pub const ALL: [Self; 7] =
        [Self::Requests, Self::Page, Self::Call, Self::Video, Self::Cubic, Self::Bbr, Self::Nobody];

    /// The name of the foreground.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Page => "page",
            Self::Call => "call",
            Self::Video => "video",
            Self::Cubic => "bulk-cubic",
            Self::Bbr => "bulk-bbr",
            Self::Nobody => "nobody",
        }
    }

    /// Whether the foreground waits for replies or packets, one after the other, so that it has a
    /// median and a 90th percentile.
    #[must_use]
    pub const fn waits(self) -> bool {
        matches!(self, Self::Requests | Self::Page | Self::Call | Self::Video)
    }

    /// Whether the foreground is one bulk flow.
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        self.congestion().is_some()
    }

    /// Returns the congestion controller of a bulk flow.
    #[must_use]
    pub const fn congestion(self) -> Option<&'static str> {
        match self {
            Self::Cubic => Some("cubic"),
            Self::Bbr => Some("bbr"),
            _ => None,
        }
    }
}

/// The numbers of background transfers at once.
pub const TRANSFER_COUNTS: [u32; 3] = [1, 2, 8];

/// The sender that a law governs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LawCarrier {
    /// The law governs sessions of byway.
    Session,
    /// TCP hosts that do as Linux does.
    Tcp,
    /// TCP hosts that behave as Linux does, but acknowledge each packet, as in the papers'
    /// simulations.
    Literal,
}

/// The law that background transfers follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law {
    /// The name of the law on the board.
    pub name: String,
    /// The kind of connection that the law governs.
    pub carrier: LawCarrier,
    /// The controller's name in plans.
    pub congestion: String,
}

/// The law of the product's class for the background.
pub const PRODUCT_LAW: &str = "background";

/// Every law: name, carrier, controller.
const LAW_TABLE: &[(&str, LawCarrier, &str)] = &[
    (PRODUCT_LAW, LawCarrier::Session, "background"),
    ("ledbat", LawCarrier::Tcp, "ledbat"),
    ("ledbat++", LawCarrier::Tcp, "ledbat++"),
    ("proteus-s", LawCarrier::Tcp, "proteus-s"),
    ("tcp-lp", LawCarrier::Tcp, "tcp-lp"),
    ("nice", LawCarrier::Literal, "nice"),
    ("harp-adaptive", LawCarrier::Literal, "harp-adaptive"),
    ("hir", LawCarrier::Literal, "hir"),
    ("bbr3", LawCarrier::Tcp, "bbr3"),
    ("cubic", LawCarrier::Tcp, "cubic"),
];

impl Law {
    /// Every law of the board.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let of = |&(name, carrier, congestion): &(&str, LawCarrier, &str)| Self {
            name: name.to_owned(),
            carrier,
            congestion: congestion.to_owned(),
        };
        LAW_TABLE.iter().map(of).collect()
    }

    /// Returns the law (congestion control) `name`: one that the scoreboard compares, or any
    /// controller. A controller is written `session:CONTROLLER` (for sessions of byway) or
    /// `tcp:CONTROLLER` (for TCP hosts).
    ///
    /// # Errors
    /// A sentence for a person: no such law, or its controller is not valid.
    pub fn named(name: &str) -> Result<Self, String> {
        if let Some(law) = Self::all().into_iter().find(|law| law.name == name) {
            return Ok(law);
        }
        let (carrier, congestion) = match name.split_once(':') {
            Some(("session", congestion)) => (LawCarrier::Session, congestion),
            Some(("tcp", congestion)) => (LawCarrier::Tcp, congestion),
            _ => {
                let all: Vec<&str> =
                    LAW_TABLE.iter().map(|law| law.0).chain(["session:NAME", "tcp:NAME"]).collect();
                return Err(crate::spelling::unknown("law", name, all));
            }
        };
        let choice: byway_control::ControllerChoice = congestion.parse().map_err(said)?;
        let sender = match carrier {
            LawCarrier::Session => byway_control::SenderKind::Session,
            LawCarrier::Tcp | LawCarrier::Literal => byway_control::SenderKind::Tcp { initial_window: 10 },
        };
        byway_control::controller(&choice, sender, 1).map_err(said)?;
        Ok(Self { name: name.to_owned(), carrier, congestion: congestion.to_owned() })
    }
}

fn said(error: byway_control::ChoiceError) -> String {
    error.to_string()
}

/// A scene in which laws are compared: a line, a foreground, and the transfers of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scene {
    /// The line of the scene.
    pub line: Bottleneck,
    /// The foreground traffic of the scene.
    pub foreground: Foreground,
    /// The number of background transfers.
    pub transfers: u32,
    /// The differences among the transfers.
    pub among: TransferMix,
}

impl Scene {
    /// The transfers: `8`, and how they differ: `2-late`.
    #[must_use]
    pub fn who(&self) -> String {
        match self.among {
            TransferMix::Alike => self.transfers.to_string(),
            among => format!("{}-{among}", self.transfers),
        }
    }

    /// Whether the scene is compared with the same transfer over the direct path alone.
    #[must_use]
    pub const fn instead_of_one_path(&self) -> bool {
        matches!(self.foreground, Foreground::Nobody) && self.transfers == 1 && self.line.paths.share_a_line()
    }
}

/// Writes the scene's name, as `10m-20ms-50p/requests/8`.
impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.line, self.foreground.name(), self.who())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn lines_have_names_of_their_own_and_are_what_the_board_promises() {
        let names: BTreeSet<String> = GRID_LINES.iter().map(Bottleneck::to_string).collect();
        assert_eq!(names.len(), GRID_LINES.len());
        for line in GRID_LINES {
            assert!((1..=1000).contains(&line.mbit) && (5..=300).contains(&line.rtt_ms), "{line}");
            assert!(line.queue >= 10 && line.jitter_ms <= 8 && line.loss <= 5, "{line}");
        }
    }

    #[test]
    fn the_halves_are_alike() {
        let of = |half, within: fn(&Bottleneck) -> bool| {
            GRID_LINES.iter().filter(|line| line.half == half && within(line)).count()
        };
        for within in [
            (|line| line.mbit < 7) as fn(&Bottleneck) -> bool,
            |line| (7..30).contains(&line.mbit),
            |line| (30..=100).contains(&line.mbit),
            |line| line.mbit > 100,
            |line| !line.is_plain(),
        ] {
            let (tune, judge) = (of(LineHalf::Tune, within), of(LineHalf::Judge, within));
            assert!(tune >= 2 && judge >= 2 && tune.abs_diff(judge) <= 3, "{tune} and {judge}");
        }
    }

    #[test]
    fn a_law_is_one_of_the_board_or_any_controller() {
        for law in Law::all() {
            assert_eq!(Law::named(&law.name), Ok(law.clone()), "{}", law.name);
        }
        assert_eq!(Law::named(PRODUCT_LAW).map(|law| law.carrier), Ok(LawCarrier::Session));
        let own = Law::named("session:hir:packets=20").expect("a controller with an option");
        assert_eq!((own.carrier, own.congestion.as_str()), (LawCarrier::Session, "hir:packets=20"));
        for (name, says) in
            [("ledbatt", "did you mean"), ("tcp:lion", "lion"), ("session:hir:lion=1", "lion")]
        {
            let told = Law::named(name).expect_err("no law");
            assert!(told.contains(says), "{told}");
        }
    }
}
