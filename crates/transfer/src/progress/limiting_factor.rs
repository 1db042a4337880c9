//! Why a transfer, or one of its paths, carries less than it could: a pure reading of what the
//! engine tells.

use byway_control::Class;
use byway_engine::connection::path::PathState;
use byway_engine::connection::status::{ConnectionStatus, PathStatus};
use byway_engine::data::Blocked;
use byway_wire::Duration;

/// Why a transfer or a path carries less than possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// Other traffic uses the line, and the background transfer yields to it.
    Yielding,
    /// Another path of the transfer leads through the same bottleneck and fills it alone.
    SharedBottleneck,
    /// The application or the disk gives no more to send.
    ApplicationLimited,
    /// The receiver takes no more for now.
    ReceiverLimited,
    /// The quota of this path's relay is used up.
    RelayQuota,
    /// This side's bandwidth limit is reached.
    BandwidthLimit,
    /// The receiver's bandwidth limit is reached.
    ReceiverBandwidthLimit,
    /// Nothing is heard from the receiver.
    NoAnswer,
    /// The path's delay cannot be measured, so the background class cannot yield safely.
    CannotSense,
}

impl PauseReason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Yielding,
        Self::SharedBottleneck,
        Self::ApplicationLimited,
        Self::ReceiverLimited,
        Self::RelayQuota,
        Self::BandwidthLimit,
        Self::ReceiverBandwidthLimit,
        Self::NoAnswer,
        Self::CannotSense,
    ];

    /// The reason with this code. `None`: there is none.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// The reason's code, for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Yielding => "yielding",
            Self::SharedBottleneck => "shared_bottleneck",
            Self::ApplicationLimited => "application_limited",
            Self::ReceiverLimited => "receiver_limited",
            Self::RelayQuota => "relay_quota",
            Self::BandwidthLimit => "bandwidth_limit",
            Self::ReceiverBandwidthLimit => "receiver_bandwidth_limit",
            Self::NoAnswer => "no_answer",
            Self::CannotSense => "cannot_sense",
        }
    }
}

/// The queueing delay from which a background path counts as yielding. A background path without
/// data in it does not cause such a queue itself.
const QUEUE_DELAY_THRESHOLD: Duration = Duration::from_millis(5);
/// Datagrams of the smallest window that a path gets.
const MIN_WINDOW_DATAGRAMS: u64 = 4;
/// The peer should have reported one-way delays after so many packets.
const DELAY_REPORT_PACKETS: u64 = 200;

/// Timeouts in a row after which a path counts as dead.
const DEAD_PATH_TIMEOUTS: u32 = 2;

/// The silence after which the user is told.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the receiver seems silent: one path in use had a retransmission timeout, and every other
/// path has unacknowledged packets. Their timeouts are not awaited, because each packet sent
/// postpones them. Also true if no path is in use.
pub(crate) fn is_silent(status: &ConnectionStatus) -> bool {
    let mut used = status.paths.iter().filter(|path| path.state != PathState::Probing).peekable();
    let is_overdue = used.peek().is_none() || used.clone().any(|path| path.silent > 0);
    is_overdue && used.all(|path| path.silent > 0 || path.in_flight > 0)
}

/// Packets acknowledged on the present paths. While the number grows, the peer is heard.
pub(crate) fn acknowledged(status: &ConnectionStatus) -> u64 {
    status.paths.iter().map(|path| path.totals.acked).sum()
}

/// Facts beside the state of the paths that explain a slow transfer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// For how long nothing is heard.
    pub silence: Duration,
    /// Whether a relay's quota is used up. It counts as the reason only if there is no other.
    pub used_up: bool,
    /// Whether the limit that applies is the receiver's.
    pub receivers_limit: bool,
    /// Whether everything was sent, and only the receiver has still something to do.
    pub sent: bool,
}

/// Why the whole transfer is held up.
pub(crate) fn of_transfer(circumstances: Circumstances, status: &ConnectionStatus) -> Option<PauseReason> {
    let carries = |path: &PathStatus| path.state != PathState::Probing;
    let Circumstances { silence, used_up, receivers_limit, sent } = circumstances;
    if used_up && !status.paths.iter().any(carries) {
        return Some(PauseReason::RelayQuota); // the receiver is not asked: no path leads to it
    }
    if silence >= SILENCE_TIMEOUT {
        return Some(PauseReason::NoAnswer);
    }
    match of_status(status) {
        Some(PauseReason::BandwidthLimit) if receivers_limit => Some(PauseReason::ReceiverBandwidthLimit),
        Some(PauseReason::ApplicationLimited) if sent => Some(PauseReason::ReceiverLimited),
        other => other.or(used_up.then_some(PauseReason::RelayQuota)),
    }
}

/// Returns why the whole transfer is held up, if its paths are not the reason.
fn of_status(status: &ConnectionStatus) -> Option<PauseReason> {
    if status.capped {
        return Some(PauseReason::BandwidthLimit);
    }
    match status.blocked {
        Some(Blocked::PeerLimit) => return Some(PauseReason::ReceiverLimited),
        Some(Blocked::Application | Blocked::Reading) => return Some(PauseReason::ApplicationLimited),
        None => {}
    }
    if status.uplink_busy {
        return Some(PauseReason::Yielding);
    }
    // One that is dead holds up nothing that the others could not carry.
    let is_used = |path: &&PathStatus| {
        matches!(path.state, PathState::Active | PathState::Choked)
            && path.silent < DEAD_PATH_TIMEOUTS
            && !path.spare
    };
    let mut used = status.paths.iter().filter(is_used);
    let first = used.next().and_then(|path| of_path(path, status))?;
    used.all(|path| of_path(path, status) == Some(first)).then_some(first)
}

/// Whether the connection's own data may cause the queue on its paths: the windows of all paths
/// with a queue together exceed one path's smallest window.
fn makes_queue(status: &ConnectionStatus) -> bool {
    let is_queued = |path: &&PathStatus| {
        path.state == PathState::Active
            && path.silent < DEAD_PATH_TIMEOUTS
            && path.queueing.is_some_and(|queue| queue >= QUEUE_DELAY_THRESHOLD)
    };
    let datagrams = |path: &PathStatus| path.window.div_ceil((path.datagram as u64).max(1));
    status.paths.iter().filter(is_queued).map(datagrams).sum::<u64>() > MIN_WINDOW_DATAGRAMS
}

/// Returns why a path is held up. The path yields to others only if the queue is not the
/// connection's own.
pub(crate) fn of_path(path: &PathStatus, status: &ConnectionStatus) -> Option<PauseReason> {
    let background = status.congestion == Class::Background.default_name();
    if path.silent >= DEAD_PATH_TIMEOUTS {
        return Some(PauseReason::NoAnswer);
    }
    match path.state {
        PathState::Choked if path.spare => Some(PauseReason::SharedBottleneck),
        PathState::Choked => (!makes_queue(status)).then_some(PauseReason::Yielding),
        PathState::Active if background => match path.queueing {
            None if path.totals.packets > DELAY_REPORT_PACKETS => Some(PauseReason::CannotSense),
            Some(queue) if queue >= QUEUE_DELAY_THRESHOLD && !makes_queue(status) => {
                Some(PauseReason::Yielding)
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_engine::path::send::Totals;
    use byway_engine::route::Route;
    use byway_wire::{Local, PathId};

    fn path(state: PathState, queueing: Option<u64>, window: u64) -> PathStatus {
        PathStatus {
            id: PathId(0),
            route: Route::direct(Local(0), "127.0.0.1:1".parse().unwrap()),
            state,
            spare: false,
            srtt: Duration::ZERO,
            is_rtt_measured: true,
            min_rtt: Duration::ZERO,
            queueing: queueing.map(Duration::from_millis),
            in_flight: 0,
            window: window * 1_200,
            rate: None,
            datagram: 1_200,
            silent: 0,
            totals: Totals { packets: 1_000, ..Totals::default() },
        }
    }

    fn status(paths: Vec<PathStatus>) -> ConnectionStatus {
        ConnectionStatus {
            paths,
            blocked: None,
            capped: false,
            uplink_busy: false,
            congestion: Class::Background.default_name(),
        }
    }

    fn silence(silence: Duration) -> Circumstances {
        Circumstances { silence, ..Circumstances::default() }
    }

    #[test]
    fn a_dead_path_is_called_that() {
        for state in [PathState::Choked, PathState::Active, PathState::Available, PathState::Probing] {
            let dead = PathStatus { silent: 2, ..path(state, Some(20), 2) };
            assert_eq!(of_path(&dead, &status(vec![])), Some(PauseReason::NoAnswer), "{state:?}");
            let late = PathStatus { silent: 1, ..path(PathState::Choked, Some(20), 2) };
            assert_eq!(of_path(&late, &status(vec![late.clone()])), Some(PauseReason::Yielding));
            // The others are why the transfer is as it is.
            let choked = path(PathState::Choked, Some(0), 2);
            assert_eq!(of_status(&status(vec![dead, choked])), Some(PauseReason::Yielding));
        }
    }

    #[test]
    fn whose_limit_it_is_and_who_is_not_through_is_told() {
        let busy = ConnectionStatus { uplink_busy: true, ..status(vec![]) };
        assert_eq!(of_status(&busy), Some(PauseReason::Yielding));
        let capped = ConnectionStatus { capped: true, ..status(vec![]) };
        let theirs = Circumstances { receivers_limit: true, ..Circumstances::default() };
        assert_eq!(of_transfer(theirs, &capped), Some(PauseReason::ReceiverBandwidthLimit));
        assert_eq!(of_transfer(Circumstances::default(), &capped), Some(PauseReason::BandwidthLimit));
        let idle = ConnectionStatus { blocked: Some(Blocked::Application), ..status(vec![]) };
        let sent = Circumstances { sent: true, ..Circumstances::default() };
        assert_eq!(of_transfer(sent, &idle), Some(PauseReason::ReceiverLimited));
        assert_eq!(of_transfer(Circumstances::default(), &idle), Some(PauseReason::ApplicationLimited));
    }

    #[test]
    fn the_reason_is_what_holds_it_up_first() {
        let fast = || path(PathState::Active, Some(1), 50);
        assert_eq!(of_status(&status(vec![fast()])), None);
        let capped =
            ConnectionStatus { capped: true, blocked: Some(Blocked::PeerLimit), ..status(vec![fast()]) };
        assert_eq!(of_status(&capped), Some(PauseReason::BandwidthLimit));
        let full = ConnectionStatus { blocked: Some(Blocked::PeerLimit), ..status(vec![fast()]) };
        assert_eq!(of_status(&full), Some(PauseReason::ReceiverLimited));
        let idle = ConnectionStatus { blocked: Some(Blocked::Reading), ..status(vec![fast()]) };
        assert_eq!(of_status(&idle), Some(PauseReason::ApplicationLimited));
    }

    #[test]
    fn silence_is_told_when_every_path_is_silent_for_long() {
        let silent = |silent| PathStatus { silent, ..path(PathState::Active, Some(1), 50) };
        let probing = path(PathState::Probing, None, 2);
        assert!(is_silent(&status(vec![silent(1), silent(4), probing])));
        let [idle, waits] = [0, 1_200].map(|in_flight| PathStatus { in_flight, ..silent(0) });
        assert!(!is_silent(&status(vec![idle.clone(), silent(4)])));
        assert!(is_silent(&status(vec![waits.clone(), silent(4)])), "a long path waits too");
        assert!(!is_silent(&status(vec![waits])) && !is_silent(&status(vec![idle])));
        assert!(is_silent(&status(Vec::new())), "there is no path left");
        let one = status(vec![silent(4)]);
        assert_eq!(of_transfer(silence(Duration::from_millis(2_999)), &one), None);
        assert_eq!(of_transfer(silence(SILENCE_TIMEOUT), &one), Some(PauseReason::NoAnswer));
    }

    #[test]
    fn a_quota_is_the_reason_if_nothing_else_is() {
        let used_up = Circumstances { used_up: true, ..Circumstances::default() };
        let late = Circumstances { silence: SILENCE_TIMEOUT, ..used_up };
        let at_once = |status: &ConnectionStatus| of_transfer(used_up, status);
        let fast = || path(PathState::Active, Some(1), 50);
        assert_eq!(at_once(&status(vec![fast()])), Some(PauseReason::RelayQuota));
        assert_eq!(at_once(&status(vec![path(PathState::Choked, Some(0), 2)])), Some(PauseReason::Yielding));
        let capped = ConnectionStatus { capped: true, ..status(vec![fast()]) };
        assert_eq!(at_once(&capped), Some(PauseReason::BandwidthLimit));
        assert_eq!(of_transfer(late, &status(vec![fast()])), Some(PauseReason::NoAnswer));
        // Without that relay there is no path at all.
        for paths in [vec![], vec![path(PathState::Probing, None, 2)]] {
            assert_eq!(of_transfer(late, &status(paths)), Some(PauseReason::RelayQuota));
        }
    }

    #[test]
    fn no_path_yields_to_another_of_its_own_connection() {
        let choked = path(PathState::Choked, Some(20), 2);
        let least = path(PathState::Active, Some(20), MIN_WINDOW_DATAGRAMS);
        let fast = path(PathState::Active, Some(20), 50);
        let reasons = |paths: Vec<PathStatus>| -> Vec<_> {
            let status = status(paths);
            status.paths.iter().map(|path| of_path(path, &status)).collect()
        };
        // Two routes over one narrow line: the data of one queue before the other's.
        assert_eq!(reasons(vec![choked.clone(), fast.clone()]), [None, None]);
        assert_eq!(reasons(vec![least.clone(), least.clone()]), [None, None]);
        assert_eq!(of_status(&status(vec![least.clone(), fast])), None);
        // What queues is not here, or is no more than one path always sends.
        let apart = path(PathState::Active, Some(1), 50);
        assert_eq!(reasons(vec![choked.clone(), apart]), [Some(PauseReason::Yielding), None]);
        assert_eq!(reasons(vec![choked, least]), [Some(PauseReason::Yielding); 2]);
    }

    #[test]
    fn a_spare_path_does_not_yield_and_does_not_hold_the_transfer_up() {
        let spare = PathStatus { spare: true, ..path(PathState::Choked, Some(0), 2) };
        let fast = status(vec![path(PathState::Active, Some(1), 50), spare.clone()]);
        assert_eq!(of_path(&spare, &fast), Some(PauseReason::SharedBottleneck));
        assert_eq!(of_status(&fast), None);
        let squeezed = path(PathState::Active, Some(20), 2);
        assert_eq!(of_status(&status(vec![spare, squeezed])), Some(PauseReason::Yielding));
    }

    #[test]
    fn a_transfer_yields_if_all_its_paths_do() {
        let choked = || path(PathState::Choked, Some(0), 2);
        let squeezed = || path(PathState::Active, Some(20), 2);
        assert_eq!(of_status(&status(vec![choked(), squeezed()])), Some(PauseReason::Yielding));
        assert_eq!(of_status(&status(vec![choked(), path(PathState::Active, Some(20), 9)])), None);
        assert_eq!(of_status(&status(vec![path(PathState::Probing, None, 2)])), None);
        let normal = ConnectionStatus { congestion: "mpath", ..status(vec![squeezed()]) };
        assert_eq!(of_status(&normal), None);
        let deaf = status(vec![path(PathState::Active, None, 9)]);
        assert_eq!(of_status(&deaf), Some(PauseReason::CannotSense));
    }
}
