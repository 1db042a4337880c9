//! Bounds that byway is known to miss on lines whose delays jump, and why.

use super::bound::{KnownFailure, known};

/// Rates and delays that change ten times a second.
const CELL_REASON: &str = "a step of the delay counts as a queue. The flow slows, and then its packets are too far \
                   apart to prove jitter: it stays slow. A train at full rate that looks whether a \
                   queue grows gives .45 to .67, and on lines without jitter requests then wait longer";
/// Long round-trip times, and fast lines.
const START_REASON: &str = "the start counts: it takes 2 to 8 s of 20, and of 10 at 300 Mbit/s";
/// Jitter of many packets, or losses by chance.
const PROOF_REASON: &str = "what is learnt of jitter is low, since it is learnt only while no queue is seen";
/// Queues that are no deeper than the jitter.
const HIDDEN_QUEUE_REASON: &str = "a queue that is no deeper than the jitter is known by losses alone. Where the line \
                           loses by chance, a CUBIC's own rate also differs from run to run by a half";
/// Packets of 6 ms, and round trips of 10 to 200 ms.
const THIN_LINE_REASON: &str = "a packet takes 6 ms. The same line without jitter misses its bound as well";
/// Four transfers.
const UNEVEN_PROOF_REASON: &str = "each flow proves and learns jitter at another time. Who knows more of it sees fewer \
                           queues, and takes more";

/// Every known miss on lines whose delays jump.
pub const KNOWN_JITTER_FAILURES: &[KnownFailure] = &[
    known("jitter-alone", "30m-100ms-62p-loss.1-jitter10/nobody/1", PROOF_REASON),
    known("jitter-alone", "30m-200ms-2000p-stalls/nobody/1", START_REASON),
    known("jitter-alone", "10m-10ms-10p-jitter10/nobody/1", PROOF_REASON),
    known("jitter-alone", "10m-10ms-10p-loss.1-cell/nobody/1", CELL_REASON),
    known("jitter-alone", "2m-10ms-10p-jitter2/nobody/1", PROOF_REASON),
    known("jitter-alone", "2m-10ms-10p-loss.1-jitter20/nobody/1", PROOF_REASON),
    known("jitter-alone", "2m-40ms-26p-cell/nobody/1", CELL_REASON),
    known("jitter-alone", "100m-200ms-1666p-loss.1-jitter5/nobody/1", START_REASON),
    known("jitter-alone", "100m-100ms-833p-loss.1-stalls/nobody/1", START_REASON),
    known("jitter-alone", "100m-200ms-416p-satellite/nobody/1", START_REASON),
    known("jitter-alone", "30m-40ms-100p-loss.1-jitter20/nobody/1", PROOF_REASON),
    known("jitter-alone", "30m-100ms-62p-cell/nobody/1", CELL_REASON),
    known("jitter-alone", "10m-200ms-666p-jitter20/nobody/1", START_REASON),
    known("jitter-alone", "300m-100ms-10000p-jitter2/nobody/1", START_REASON),
    known("jitter-alone", "300m-200ms-5000p-loss.1-jitter10/nobody/1", START_REASON),
    known("jitter-alone", "300m-100ms-10000p-loss.1-jitter20/nobody/1", START_REASON),
    known("jitter-alone", "300m-10ms-62p-stalls/nobody/1", START_REASON),
    known("jitter-alone", "300m-200ms-5000p-cell/nobody/1", CELL_REASON),
    known("jitter-alone", "300m-40ms-4000p-loss.1-satellite/nobody/1", START_REASON),
    known("jitter-alone", "100m-10ms-20p-jitter20/nobody/1", PROOF_REASON),
    known("jitter-alone", "100m-40ms-1333p-loss.1-cell/nobody/1", CELL_REASON),
    known("jitter-stuck", "10m-10ms-10p-loss.1-cell/nobody/1", CELL_REASON),
    known("jitter-stuck", "2m-40ms-26p-cell/nobody/1", CELL_REASON),
    known("jitter-stuck", "30m-100ms-62p-cell/nobody/1", CELL_REASON),
    known("jitter-stuck", "300m-200ms-5000p-cell/nobody/1", CELL_REASON),
    known("jitter-stuck", "100m-40ms-1333p-loss.1-cell/nobody/1", CELL_REASON),
    known("jitter-requests", "2m-40ms-26p-cell/requests/1", THIN_LINE_REASON),
    known("jitter-requests", "2m-10ms-10p-jitter2/requests/1", THIN_LINE_REASON),
    known("jitter-requests", "2m-10ms-10p-loss.1-jitter20/requests/1", THIN_LINE_REASON),
    known("jitter-requests", "2m-200ms-10p-loss.1-satellite/requests/1", THIN_LINE_REASON),
    known("jitter-requests", "2m-100ms-16p-stalls/requests/1", THIN_LINE_REASON),
    known("jitter-bulk", "10m-200ms-666p-loss.1-jitter2/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "10m-10ms-10p-jitter10/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "30m-200ms-2000p-stalls/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "30m-100ms-62p-loss.1-jitter10/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "100m-200ms-1666p-loss.1-jitter5/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "100m-200ms-416p-satellite/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "30m-40ms-100p-loss.1-jitter20/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "300m-100ms-10000p-jitter2/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "30m-10ms-25p-loss.1-satellite/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "10m-200ms-666p-jitter20/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "10m-100ms-20p-loss.1-jitter5/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "10m-40ms-10p-loss.1-stalls/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "2m-200ms-10p-loss.1-satellite/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "300m-40ms-250p-jitter5/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "100m-10ms-20p-loss.1-jitter2/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-bulk", "100m-10ms-20p-jitter20/bulk-cubic/1", HIDDEN_QUEUE_REASON),
    known("jitter-four", "2m-10ms-10p-loss.1-jitter20/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "10m-10ms-10p-jitter10/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "10m-10ms-10p-loss.1-cell/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "100m-100ms-833p-loss.1-stalls/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "30m-100ms-62p-loss.1-jitter10/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "30m-200ms-2000p-stalls/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "10m-200ms-666p-jitter20/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "10m-40ms-10p-loss.1-stalls/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "10m-100ms-333p-satellite/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "2m-40ms-26p-loss.1-jitter10/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "2m-200ms-10p-loss.1-satellite/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-40ms-4000p-loss.1-satellite/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "30m-10ms-100p-jitter5/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "30m-40ms-100p-loss.1-jitter20/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-100ms-10000p-jitter2/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-40ms-250p-jitter5/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "100m-40ms-1333p-jitter10/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "100m-40ms-1333p-loss.1-cell/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-200ms-5000p-cell/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-200ms-5000p-loss.1-jitter10/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "100m-10ms-20p-jitter20/nobody/4", UNEVEN_PROOF_REASON),
    known("jitter-four", "300m-100ms-10000p-loss.1-jitter20/nobody/4", UNEVEN_PROOF_REASON),
];
