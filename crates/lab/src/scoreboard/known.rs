//! Bounds that the law [`PRODUCT`] is known to miss, and why. A miss that is listed here does not
//! fail the scoreboard.
//!
//! [`PRODUCT`]: super::grid::PRODUCT

use super::judge::KnownFailure;

/// A packet takes 6 to 12 ms there, and requests alone load the line by .4 to .8.
const THIN: &str = "a queue is four packets in a row that wait: 50 to 100 ms at 1 and 2 Mbit/s";
/// Eight from 4 Mbit/s on.
const EIGHT: &str =
    "each of eight needs four packets of its own to tell a queue, so they yield later than one";
/// One or two figures of a line.
const NEAR: &str = "by some hundredths; harm and share are traded for each other there";
/// One at 10 Mbit/s and an RTT of 100 ms.
const IDLES: &str = "not traced: one uses .67 beside requests and .71 beside a page";
/// A CUBIC at 100 and 300 Mbit/s, in its first seconds.
const CLIMBS: &str = "beside a transfer the CUBIC's slow start ends sooner, and it climbs for seconds. \
                      Without HyStart at 100 Mbit/s it keeps .98, and so with a queue that fills the \
                      line at 300. That it keeps .76 there is not traced further";
/// One at 300 Mbit/s.
const TWICE: &str = "a queue of its own is answered twice, as waits swing around 1 ms: with an RTT \
                     between two answers requests leave .89. A page's bursts pass 1 ms too: with a \
                     threshold of 2 ms a page leaves .87";
/// How soon a line is used again.
const FORGETS: &str = "each queue that passes for the path's own takes a tenth off the level that is \
                       had again at once. If none did, it takes 3.0 to 3.9 s, but Jain's index of two \
                       falls to .8, and a CUBIC at 300 Mbit/s keeps .44";
/// How soon an empty line is used.
const BEGINS: &str = "the start begins with more than the line carries, and its queue is emptied first. \
                      With 100 packets per second instead of 200 it takes 1.3 and 1.8 s, but two at 1 \
                      Mbit/s take 5.8 s";
/// An RTT of 100 ms, with and without random loss.
const LONG: &str = "the same line without loss has .88 too: the answer to a queue takes an RTT of 100 \
                    ms, and such a queue comes each 1.7 s. A decrease to .95 gives .90";
/// One packet of a thousand is lost by chance.
const CHANCE: &str = "loss costs .01 at most: without it one has .91, and eight have .90";
/// A foreground that loses by chance.
const SCATTER: &str = "2.65, and 2.51 beside CUBIC, are of one seed. The median of five is 1.99";
/// Two that begin unevenly, or one after the other.
const EVENS: &str = "a difference shrinks by a factor e in 25 s at 10 Mbit/s and 40 s at 50: halves of the time have .89 to .97";
/// Two, four and ten at 10 Mbit/s, and two at an RTT of 100 ms.
const BELIEFS: &str = "not traced. Each learns jitter only while it meets no queue, and flows that meet queues at \
                       different moments may believe different jitter";
/// An RTT of 5 ms.
const CLOSE: &str = "who begins beside another never meets the line free of packets, so its base is a \
                     packet's 1.2 ms too high, and the threshold is 1.8 ms. With one of 4 ms two have \
                     .98, and the least of eight .28";
/// Jitter of many packets.
const TREMBLES: &str = "rows of late packets come of jitter alone, and lower levels: one of ten has .01 of its part for ten seconds";
/// Paths over one line.
const COUPLED: &str = "growth is coupled, and answers to queues are not: three paths take 1.30 of one at 30 Mbit/s, and .68 at 10";
/// Two paths over a thin line.
const ACCESS: &str = "two paths have .94 of what one has. Not found: where they had .95, a threshold of 5 ms \
                      gave .98, .6 of the pace kept in a queue .97, half the growth .97, a decrease to \
                      .95 and rows of eight .95";
/// Several paths, and how near to full a law goes that lets queues drain.
const DRAINED: &str =
    "each path leaves some hundredths of its line: one has .91 of 10 Mbit/s, and several have .89";
/// Where each flow has a queue of its own.
const FAIR: &str =
    "a call waits for the turns of eight others, whatever they do: p90 1.12, and 1.10 beside CUBIC";
/// Why laws miss a bound beside rivals.
const RIVALS: &str = "eight of harp-adaptive and hir delay a call less, as they are like few: Jain .51 \
                      and .31 at 10 Mbit/s. One of them delays it as much as one of the class";

/// Every miss of a bound whose reason is known.
pub const KNOWN: &[KnownFailure] = &[
    known("one-1", "1m-60ms-50p/", THIN),
    known("one-2", "2m-100ms-17p/", THIN),
    known("one-7", "7m-30ms-35p/", NEAR),
    known("one-7", "10m-20ms-50p/requests/1", NEAR),
    known("one-7", "10m-100ms-83p/", IDLES),
    known("one-30", "30m-30ms-300p/", NEAR),
    known("one-30", "100m-20ms-50p/", NEAR),
    known("one-30", "300m-20ms-100p/", TWICE),
    known("eight-thin", "1m-60ms-50p/", THIN),
    known("eight-thin", "2m-100ms-17p/", THIN),
    known("eight-thin", "4m-50ms-50p/call/8", EIGHT),
    known("eight", "7m-30ms-35p/", EIGHT),
    known("eight", "10m-20ms-50p/", EIGHT),
    known("shared", "7m-30ms-35p/", NEAR),
    known("shared", "10m-20ms-50p/nobody/2", BELIEFS),
    known("shared", "10m-20ms-50p/nobody/4", BELIEFS),
    known("shared", "10m-20ms-50p/nobody/10", BELIEFS),
    known("shared", "10m-100ms-83p/", BELIEFS),
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
    known("late", "50m-40ms-167p/", EVENS),
    known("coupled", "30m-30ms-75p-3over1/", COUPLED),
    known("access", "5m-20ms-25p-2over1/", ACCESS),
    known("disjoint", "10m-20ms-50p-3over3/", DRAINED),
    known("mpath-7", "20m-100ms-2p-mpath7/", DRAINED),
    known("mpath-7", "20m-100ms-50p-mpath7/", DRAINED),
    known("bulk", "1m-60ms-50p/", THIN),
    known("bulk", "2m-100ms-17p/", THIN),
    known("bulk", "10m-100ms-83p/", NEAR),
    known("bulk", "100m-20ms-50p/", CLIMBS),
    known("bulk", "300m-20ms-100p/", CLIMBS),
    known("regain", "100m-20ms-50p/", FORGETS),
    known("regain", "300m-20ms-100p/", FORGETS),
    known("fill", "1m-60ms-50p/", BEGINS),
    known("loss", "10m-20ms-50p-loss.1/", CHANCE),
    known("loss", "10m-100ms-83p-loss.5/", LONG),
    known("cubic", "10m-100ms-83p-loss.5/", SCATTER),
    known("cubic", "10m-40ms-1000p-fqcodel/call/8", FAIR),
    known("undominated", "", RIVALS),
];

const fn known(bound: &'static str, scene: &'static str, reason: &'static str) -> KnownFailure {
    KnownFailure { bound, scene, reason }
}
