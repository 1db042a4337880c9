//! The laws that the record of a random world must obey.

use super::{pace, world_facts};
use crate::record::{ExchangeRecord, Record, RequestRecord, TransferRecord};
use crate::setup::{Carrier, Changed, Demand, ExchangeOptions, Setup, Transfer};
use byway_engine::ConnectError;
use byway_engine::connection::close;

/// Controllers that take the smallest delay of a path's whole life for the delay without a queue,
/// as their papers say. After a change to a longer route, and where delays jump, they yield for
/// ever, so that nothing is promised. Elsewhere they progress.
const YIELDING_CONTROLLERS: [&str; 7] =
    ["harp-adaptive", "harp-independent", "harp-joint", "hir", "hir-literal", "nice", "tcp-lp"];
/// A transfer progresses if it received at least one byte in its last `STANDSTILL_SECONDS` seconds.
/// The time is long because a retransmission timeout may be a minute, and the next one may be lost
/// too.
const STANDSTILL_SECONDS: usize = 400;
/// After the last trouble, an attempt to connect may still end in vain for this many seconds: it
/// begins up to a minute after the one before, and takes 20 s to give up.
const LATE_ATTEMPT_SECONDS: f64 = 90.0;
/// Extra seconds for a session whose loss is noticed only after its timeout of a minute.
const LATE_LOSS_SECONDS: f64 = 90.0;
/// The flow control window of the engine, in bytes, where a plan names none. Data take at most
/// four times as much.
const MEMORY_FACTOR: u64 = 4;
/// The smallest window in bytes, even if a plan names less.
const MIN_MEMORY_BYTES: u64 = 16 << 10;
/// Requests beside transfers of the class `background` may take this many times as long as beside
/// none, in the median.
const MAX_STRETCH: f64 = 3.0;
/// The longest wait in seconds that a person does not notice.
const UNNOTICED_SECONDS: f64 = 0.1;

/// Whether the record of a world keeps the laws.
///
/// # Errors
/// Which one it breaks.
pub(super) fn hold(setup: &Setup, record: &Record) -> Result<(), String> {
    for (asked, transfer) in setup.transfers.iter().zip(&record.transfers) {
        if let (Carrier::Exchange(options), Some(exchange)) = (&asked.carrier, &transfer.exchange) {
            sound(setup, asked, options, exchange)?;
        }
        ends(setup, asked, transfer, record)?;
    }
    let mut requests = record.requests.iter().flat_map(|requests| &requests.list);
    if record.transfers.iter().all(|transfer| transfer.failed.is_none())
        && let Some(request) = requests.find(|it| it.began.is_some() && it.took.is_none() && !it.given_up)
        && is_over(record)
    {
        return Err(format!("a request of {} bytes never ends", request.size));
    }
    Ok(())
}

/// Whether the run reached the end of its time.
fn is_over(record: &Record) -> bool {
    let samples = record.transfers.first().map_or(0, |transfer| transfer.received.len());
    samples as f64 * record.sample >= record.duration
}

/// Checks that a transfer of a given size ends in time, with exactly that size.
fn ends(setup: &Setup, asked: &Transfer, transfer: &TransferRecord, record: &Record) -> Result<(), String> {
    let Demand::Size(size) = asked.demand else { return Ok(()) };
    let name = &transfer.name;
    let received = transfer.received.last().copied().unwrap_or_default();
    if let Some(why) = &transfer.failed {
        if is_excused(setup, why) {
            return Ok(());
        }
        return Err(format!("{name} failed: {why}"));
    }
    let Some(finished) = transfer.finished else {
        let before = transfer.received.iter().rev().nth(STANDSTILL_SECONDS).copied().unwrap_or_default();
        let is_longer =
            setup.changes.iter().any(|change| matches!(&change.what, Changed::Link { delay: Some(_), .. }));
        let is_misled = is_longer || pace::is_jittered(setup);
        if YIELDING_CONTROLLERS.contains(&asked.congestion.name.as_str()) && (is_misled || received > before)
        {
            return Ok(());
        }
        let seconds = record.duration;
        return Err(format!(
            "{name} ({}) has {received} of {size} bytes after {seconds} s",
            asked.congestion.name
        ));
    };
    if received != size {
        return Err(format!("{name} is finished with {received} of {size} bytes"));
    }
    match pace::latest_end(setup, asked, record) {
        Some(latest) if finished > latest => Err(format!(
            "{name} ({}) took until {finished:.0} s, and {latest:.0} s are enough",
            asked.congestion.name
        )),
        _ => Ok(()),
    }
}

/// Whether a plain session, which connects only once, may fail with this reason.
fn is_excused(setup: &Setup, why: &str) -> bool {
    let links = || setup.network.links.iter().map(|link| &link.spec);
    let is_dark = setup.changes.iter().any(|change| match &change.what {
        Changed::Udp { .. } => true,
        Changed::Link { up, .. } => *up == Some(false),
        _ => false,
    }) || links().any(|spec| !spec.partitions.is_empty());
    // Who has no checksum takes a damaged first message for one to another host.
    let is_damaged = setup.attack.forged > 0.0 || links().any(|spec| spec.corruption.is_some());
    is_dark && why == ConnectError::NoAnswer.to_string()
        || is_damaged && why == ConnectError::WrongKey.to_string()
}

/// Checks that all bytes of an exchange are right, that memory stays bounded, and that no session
/// with a live peer is lost.
fn sound(
    setup: &Setup,
    asked: &Transfer,
    options: &ExchangeOptions,
    exchange: &ExchangeRecord,
) -> Result<(), String> {
    let name = &asked.name;
    if let Some(mistake) = exchange.mistakes.first() {
        return Err(format!("{name}: {mistake}"));
    }
    if let Some(memory) = options.memory {
        let most = MEMORY_FACTOR * memory.max(MIN_MEMORY_BYTES);
        if exchange.most_memory > most {
            return Err(format!(
                "{name}: data took {} bytes of memory, and may take {most}",
                exchange.most_memory
            ));
        }
    }
    let trouble_end = world_facts::trouble_end(setup).as_secs_f64();
    // Nothing was heard of the peer, or none of the data arrived, for a minute.
    let losses = [close::IDLE_CODE, close::STANDSTILL_CODE].map(|code| format!("closed with code {code}:"));
    for lost in &exchange.lost {
        let late = if lost.connected { LATE_LOSS_SECONDS } else { LATE_ATTEMPT_SECONDS };
        let (at, why) = (lost.at, &lost.why);
        if lost.connected && !losses.iter().any(|loss| why.starts_with(loss)) {
            return Err(format!("{name}: a session ended at {at:.1} s: {why}"));
        }
        // Both sides forget a session of which nothing got through since the handshake.
        let is_attempt = why.ends_with(close::UNANSWERED_REASON);
        // Its line was cut before the peer could be asked for relays.
        if lost.paths <= 1 && pace::is_cut(setup, asked) {
            continue;
        }
        if lost.connected && !is_attempt && !pace::may_lose_session(setup, name) {
            return Err(format!("{name}: a session whose peer lives was lost at {at:.1} s: {why}"));
        }
        if at > trouble_end + late {
            return Err(format!("{name}: long after the last trouble, at {at:.1} s, it was in vain: {why}"));
        }
    }
    Ok(())
}

/// Returns the world without its transfers, if its requests must not suffer: all transfers are
/// `background`, on lines without random faults.
pub(super) fn alone(setup: &Setup) -> Option<Setup> {
    let is_mild = |transfer: &Transfer| {
        transfer.congestion.name == "background"
            && matches!(transfer.carrier, Carrier::Session(_) | Carrier::Exchange(_))
    };
    let is_quiet = setup.network.links.iter().all(|link| {
        let spec = &link.spec;
        spec.loss.is_none()
            && spec.burst_loss.is_none()
            && spec.corruption.is_none()
            && spec.reordering.is_none()
            && spec.jitter.is_none()
            && spec.partitions.is_empty()
    });
    if setup.requests.is_empty() || !setup.changes.is_empty() || !is_quiet {
        return None;
    }
    let all_mild = setup.transfers.iter().all(is_mild);
    all_mild.then(|| Setup { transfers: Vec::new(), registry: None, ..setup.clone() })
}

/// Requests beside transfers take about as long as alone.
///
/// # Errors
/// They take much longer.
pub(super) fn requests_hardly_wait(beside: &Record, alone: &Record) -> Result<(), String> {
    let all = |record: &Record| -> Vec<RequestRecord> {
        record.requests.iter().flat_map(|requests| requests.list.clone()).collect()
    };
    let mut stretches: Vec<f64> = all(beside)
        .iter()
        .zip(all(alone))
        .filter_map(|(beside, alone)| {
            let (long, short) = (beside.took?, alone.took?);
            Some(if long - short < UNNOTICED_SECONDS { 1.0 } else { long / short })
        })
        .collect();
    stretches.sort_by(f64::total_cmp);
    match stretches.get(stretches.len() / 2) {
        Some(median) if *median > MAX_STRETCH => {
            Err(format!("requests take {median:.1} times as long beside transfers as alone"))
        }
        _ => Ok(()),
    }
}
