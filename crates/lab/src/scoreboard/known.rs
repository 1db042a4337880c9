//! Bounds that are known to be missed, and why. A miss that stands here does not fail the board. They are those of [`PRODUCT`].
//!
//! [`PRODUCT`]: super::grid::PRODUCT

use super::judge::Known;

/// A packet takes 6 to 12 ms there, and requests alone load the line by .4 to .8.
const THIN: &str = "a queue is four packets in a row that wait: 50 to 100 ms at 1 and 2 Mbit/s";
/// Eight from 4 Mbit/s on.
const EIGHT: &str =
    "each of eight needs four packets of its own to tell a queue, so they yield later than one";
/// One or two figures of a line.
const NEAR: &str = "by some hundredths; harm and share are traded for each other there";
/// Bulk flows, and lines of 300 Mbit/s.
const SHORT: &str = "queues of a fifth to a third of what fills the line; not traced yet";
/// How soon a line is used.
const SETTLES: &str = "levels grow too slowly there; not traced yet";
/// Random loss.
const LOSS: &str = "by some hundredths of the line, or beside flows that loss slows down; not traced yet";
/// Two that begin unevenly, or one after the other.
const EVENS: &str = "a difference shrinks by a factor e in 25 s at 10 Mbit/s and 40 s at 50: halves of the time have .85 to .97";
/// An RTT of 5 ms.
const CLOSE: &str =
    "two have .86 in the second minute, and one of eight has .13 of its part for ten seconds; not traced yet";
/// Jitter of many packets.
const TREMBLES: &str = "rows of late packets come of jitter alone, and lower levels: one has .01 to .16 of its part for ten seconds";
/// Paths over one line.
const COUPLED: &str = "growth is coupled, and answers to queues are not: three paths take 1.48 of one at 30 Mbit/s, and .95 at 10";
/// Two paths over a thin line.
const ACCESS: &str = "two paths have .95 of what one has; not traced yet";
/// Several paths, and how near to full a law goes that lets queues drain.
const DRAINED: &str =
    "each path leaves some hundredths of its line: one has .91 of 10 Mbit/s, and several have .89";
/// Where each flow has a queue of its own.
const FAIR: &str =
    "a call waits for the turns of eight others, whatever they do: p90 1.12, and 1.10 beside CUBIC";
/// Beside rivals.
const RIVALS: &str = "of eight beside calls, harp-adaptive and hir harm less and use more; not traced yet";

/// Every known miss.
pub const KNOWN: &[Known] = &[
    known("one-1", "1m-60ms-50p/", THIN),
    known("one-2", "2m-100ms-17p/", THIN),
    known("one-4", "4m-50ms-50p/", NEAR),
    known("one-7", "7m-30ms-35p/", NEAR),
    known("one-7", "10m-20ms-50p/", NEAR),
    known("one-7", "10m-100ms-83p/", NEAR),
    known("one-30", "30m-30ms-300p/", NEAR),
    known("one-30", "100m-20ms-50p/", NEAR),
    known("one-30", "300m-20ms-100p/", SHORT),
    known("eight-thin", "1m-60ms-50p/", THIN),
    known("eight-thin", "2m-100ms-17p/", THIN),
    known("eight-thin", "4m-50ms-50p/call/8", EIGHT),
    known("eight", "7m-30ms-35p/", EIGHT),
    known("eight", "10m-20ms-50p/", EIGHT),
    known("shared", "7m-30ms-35p/", NEAR),
    known("shared", "10m-20ms-50p/nobody/2", EVENS),
    known("shared", "50m-40ms-167p/", EVENS),
    known("shared-10", "10m-20ms-50p/", EVENS),
    known("shared-10", "10m-100ms-83p/", EVENS),
    known("shared-jitter-8", "10m-20ms-50p-jitter8/", TREMBLES),
    known("shared", "10m-5ms-16p/", CLOSE),
    known("shared", "10m-20ms-20p/", EVENS),
    known("shared", "50m-100ms-100p/", EVENS),
    known("shared-10", "10m-5ms-16p/", CLOSE),
    known("shared-10", "10m-20ms-20p/", EVENS),
    known("shared-jitter", "50m-40ms-167p-jitter3/", TREMBLES),
    known("rtt", "7m-30ms-35p/", EVENS),
    known("late", "7m-30ms-35p/", EVENS),
    known("late", "10m-20ms-50p/", EVENS),
    known("late", "50m-40ms-167p/", EVENS),
    known("coupled", "30m-30ms-75p-3over1/", COUPLED),
    known("access", "5m-20ms-25p-2over1/", ACCESS),
    known("disjoint", "10m-20ms-50p-3over3/", DRAINED),
    known("mpath-7", "20m-100ms-2p-mpath7/", DRAINED),
    known("mpath-7", "20m-100ms-50p-mpath7/", DRAINED),
    known("bulk", "1m-60ms-50p/", THIN),
    known("bulk", "2m-100ms-17p/", THIN),
    known("bulk", "10m-100ms-83p/", NEAR),
    known("bulk", "100m-20ms-50p/", SHORT),
    known("bulk", "300m-20ms-100p/", SHORT),
    known("regain", "1m-60ms-50p/", SETTLES),
    known("regain", "30m-30ms-300p/", SETTLES),
    known("regain", "100m-20ms-50p/", SETTLES),
    known("regain", "300m-20ms-100p/", SETTLES),
    known("fill", "1m-60ms-50p/", SETTLES),
    known("fill-100", "2m-100ms-17p/", SETTLES),
    known("loss", "10m-20ms-50p-loss.1/", LOSS),
    known("loss", "10m-100ms-83p-loss.5/", LOSS),
    known("cubic", "300m-20ms-100p/", SHORT),
    known("cubic", "10m-100ms-83p-loss.5/", LOSS),
    known("cubic", "10m-40ms-1000p-fqcodel/call/8", FAIR),
    known("undominated", "", RIVALS),
];

const fn known(bound: &'static str, scene: &'static str, reason: &'static str) -> Known {
    Known { bound, scene, reason }
}
