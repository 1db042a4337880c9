//! Whether the session lives: what was heard when, and how it ends.

use crate::config::Config;
use crate::endpoint::steady_clock::SteadyClock;
use crate::role::Role;
use alloc::string::String;
use byway_wire::{Duration, Instant};

/// A connection is kept this long for a peer of which no packet came since the handshake. Both
/// sides wait equally long, so that neither waits for one that has forgotten it.
const UNCONFIRMED_TIMEOUT: Duration = Duration::from_secs(30);
/// With nothing heard for this long, ask; earlier if the connection would be given up soon. It is
/// the least interval between keep-alives by RFC 8085 section 3.5.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The part of the wait by which the responder asks later. Otherwise both hosts would ask at once,
/// although each question answers the other.
const RESPONDER_DELAY_PART: u32 = 8;
/// With nothing heard for this long after data came, ask: this side may have a new address, which
/// the peer learns from what it is asked. The wait doubles with each time, up to `KEEP_ALIVE`.
const DATA_KEEP_ALIVE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
enum SessionPhase {
    Open,
    /// CLOSE is sent at once, a few times more before `until`, and once for each packet that still
    /// arrives.
    Closing {
        code: u64,
        reason: String,
        until: Instant,
        again_at: Instant,
        tell: bool,
        /// Whether the session ends as soon as one CLOSE was sent.
        once: bool,
    },
    Closed,
}

/// The reaction to the peer's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilenceAction {
    /// Nothing: the peer was heard recently.
    Heard,
    /// Send a PING, to see whether the peer still answers.
    Ask,
    /// The peer never showed that it has the keys: its HELLO is a replay, or it went away.
    NeverConfirmed,
    /// The peer answered the handshake, and sent no packet since: end the session.
    Unanswered,
    /// The peer was silent for too long: end the session.
    Lost,
}

/// The life of a session.
#[derive(Debug)]
pub(super) struct SessionState {
    phase: SessionPhase,
    idle_timeout: Duration,
    role: Role,
    last_heard: Instant,
    last_asked: Instant,
    /// The silence after which the peer is asked.
    ask_wait: Duration,
    /// Whether the peer has proved that it has the keys.
    confirmed: bool,
    /// Whether any packet came since the handshake.
    heard: bool,
    /// Whether the owner refused the session, and so gets no event about it.
    rejected: bool,
    /// Whether the owner was told that the session is over.
    told_over: bool,
    /// The endpoint's clock, which skips jumps of the driver's clock.
    steady: SteadyClock,
}

impl SessionState {
    pub fn new(now: Instant, config: &Config, role: Role) -> Self {
        Self {
            phase: SessionPhase::Open,
            idle_timeout: config.idle_timeout,
            role,
            last_heard: now,
            last_asked: now,
            ask_wait: KEEP_ALIVE,
            confirmed: role == Role::Initiator,
            heard: false,
            rejected: false,
            told_over: false,
            steady: SteadyClock::new(),
        }
    }

    pub const fn keep_time(&mut self, steady: SteadyClock) {
        self.steady = steady;
    }

    /// The endpoint's own time at a time of the driver's.
    pub fn own_time(&self, driver: Instant) -> Instant {
        self.steady.own(driver)
    }

    #[inline]
    pub const fn is_open(&self) -> bool {
        matches!(self.phase, SessionPhase::Open)
    }

    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, SessionPhase::Closed)
    }

    #[inline]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    pub const fn is_rejected(&self) -> bool {
        self.rejected
    }

    /// Marks the session as refused: its owner never learns of it.
    pub const fn set_rejected(&mut self) {
        self.rejected = true;
    }

    /// Marks the owner as informed that the session is over. Returns whether this is the first
    /// time.
    pub const fn tell_over(&mut self) -> bool {
        !core::mem::replace(&mut self.told_over, true)
    }

    /// Notes that an authentic packet arrived. Returns whether it is the first.
    #[inline]
    pub fn on_heard(&mut self, now: Instant) -> bool {
        (self.last_heard, self.heard) = (now, true);
        !core::mem::replace(&mut self.confirmed, true)
    }

    /// Notes that data of the peer came. Returns whether the [`deadline`](Self::deadline) is
    /// earlier for that.
    #[inline]
    pub fn on_data(&mut self) -> bool {
        core::mem::replace(&mut self.ask_wait, DATA_KEEP_ALIVE) > DATA_KEEP_ALIVE
    }

    /// Whether anything was received from the peer since `at`.
    pub fn heard_since(&self, at: Instant) -> bool {
        self.last_heard > at
    }

    /// Whether anything was received from the peer in the last `time`.
    pub fn is_heard_within(&self, now: Instant, time: Duration) -> bool {
        now <= self.last_heard + time
    }

    /// An authentic packet came, perhaps too late: one that comes to a session that ends is
    /// answered with CLOSE.
    #[inline]
    pub const fn answer_close(&mut self) {
        if let SessionPhase::Closing { tell, .. } = &mut self.phase {
            *tell = true;
        }
    }

    /// Ends the session at `now`. During `linger`, CLOSE is still sent to the peer.
    pub fn close(&mut self, now: Instant, code: u64, reason: &str, linger: Duration) {
        let (until, again_at) = (now + linger, now + linger / 3);
        let reason = String::from(reason);
        self.phase = SessionPhase::Closing { code, reason, until, again_at, tell: true, once: false };
    }

    /// The peer ended the session. It is told once that its CLOSE arrived, so that it need not wait
    /// for longer. If that cannot be told within `patience`, the session ends without it.
    pub fn confirm_close(&mut self, now: Instant, code: u64, reason: &str, patience: Duration) {
        let (until, reason) = (now + patience, String::from(reason));
        self.phase = SessionPhase::Closing { code, reason, until, again_at: until, tell: true, once: true };
    }

    /// Refuses the session. The peer gets a CLOSE as soon as it has proved that its HELLO is no
    /// replay.
    pub fn reject(&mut self, now: Instant, code: u64, reason: &str) {
        self.rejected = true;
        let (until, reason) = (now + UNCONFIRMED_TIMEOUT, String::from(reason));
        self.phase = SessionPhase::Closing { code, reason, until, again_at: until, tell: false, once: false };
    }

    /// Ends the session without telling the peer.
    pub fn end(&mut self) {
        self.phase = SessionPhase::Closed;
    }

    /// Returns the code and reason of the CLOSE, while it is being sent.
    pub fn closing(&self) -> Option<(u64, &str)> {
        match &self.phase {
            SessionPhase::Closing { code, reason, .. } => Some((*code, reason)),
            SessionPhase::Open | SessionPhase::Closed => None,
        }
    }

    /// Whether CLOSE is to be sent now. Resets the request. A session that sends CLOSE once is then
    /// due to end.
    pub const fn take_tell(&mut self, now: Instant) -> bool {
        match &mut self.phase {
            SessionPhase::Closing { tell, once, until, .. } => {
                if *tell && *once {
                    *until = now;
                }
                core::mem::replace(tell, false)
            }
            SessionPhase::Open | SessionPhase::Closed => false,
        }
    }

    /// Returns the time at which a closing session must be woken. `None`: it is not closing.
    pub fn closing_deadline(&self) -> Option<Instant> {
        match &self.phase {
            SessionPhase::Closing { until, again_at, .. } => Some((*until).min(*again_at)),
            SessionPhase::Open | SessionPhase::Closed => None,
        }
    }

    /// Handles timeouts of a closing session.
    pub fn wake_closing(&mut self, now: Instant) {
        if let SessionPhase::Closing { until, again_at, tell, .. } = &mut self.phase {
            if *until <= now {
                self.phase = SessionPhase::Closed;
            } else if *again_at <= now {
                *again_at = *again_at + (until.since(*again_at) / 2).max(Duration::from_millis(1));
                *tell = true;
            }
        }
    }

    /// Returns the reaction to the peer's silence at `now`.
    pub fn silence(&mut self, now: Instant) -> SilenceAction {
        if self.lost_at() <= now {
            return match (self.heard, self.confirmed) {
                (true, _) => SilenceAction::Lost,
                (false, true) => SilenceAction::Unanswered,
                (false, false) => SilenceAction::NeverConfirmed,
            };
        }
        if self.ask_at() > now {
            return SilenceAction::Heard;
        }
        (self.last_asked, self.ask_wait) = (now, (self.ask_wait * 2).min(KEEP_ALIVE));
        SilenceAction::Ask
    }

    /// When the peer counts as lost if nothing more is heard.
    fn lost_at(&self) -> Instant {
        let patience =
            if self.heard { self.idle_timeout } else { self.idle_timeout.min(UNCONFIRMED_TIMEOUT) };
        self.last_heard + patience
    }

    /// Returns the time at which a silent peer gets the next PING.
    fn ask_at(&self) -> Instant {
        let wait = self.ask_wait.min(self.idle_timeout / 4);
        let late = self.role == Role::Responder && self.ask_wait == KEEP_ALIVE;
        let delay = if late { wait / RESPONDER_DELAY_PART } else { Duration::ZERO };
        self.last_heard.max(self.last_asked) + wait + delay
    }

    /// When [`silence`](Self::silence) must be called next.
    pub fn deadline(&self) -> Instant {
        self.lost_at().min(self.ask_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_silent_peer_is_asked_and_then_lost() {
        let config = Config { idle_timeout: Duration::from_secs(20), ..Config::default() };
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut session = SessionState::new(at(0), &config, Role::Initiator);
        assert_eq!((session.deadline(), session.silence(at(4))), (at(5), SilenceAction::Heard));
        assert_eq!(
            (session.silence(at(5)), session.silence(at(6))),
            (SilenceAction::Ask, SilenceAction::Heard)
        );
        assert!(!session.on_heard(at(9)));
        assert_eq!((session.deadline(), session.silence(at(14))), (at(14), SilenceAction::Ask));
        assert_eq!(session.silence(at(29)), SilenceAction::Lost);
    }

    #[test]
    fn of_two_that_rest_one_asks() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut sides =
            [Role::Initiator, Role::Responder].map(|role| SessionState::new(at(0), &Config::default(), role));
        let mut questions = [0; 2];
        for second in 0..150 {
            for side in 0..2 {
                if sides[side].silence(at(second)) == SilenceAction::Ask {
                    questions[side] += 1;
                    sides.iter_mut().for_each(|side| _ = side.on_heard(at(second)));
                }
            }
        }
        assert_eq!(questions, [9, 0]);
        // The other asks if no question comes.
        assert_eq!(sides[1].deadline(), at(135) + KEEP_ALIVE + KEEP_ALIVE / RESPONDER_DELAY_PART);
    }

    #[test]
    fn who_sent_data_is_asked_soon_and_then_ever_more_rarely() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut session = SessionState::new(at(0), &Config::default(), Role::Initiator);
        assert!(session.on_data() && !session.on_data());
        session.on_heard(at(10));
        let mut asked = Vec::new();
        for second in 10..60 {
            if session.silence(at(second)) == SilenceAction::Ask {
                asked.push(second);
                session.on_heard(at(second)); // it answers
            }
        }
        assert_eq!(asked, [12, 16, 24, 39, 54]);
        assert!(session.on_data(), "it sends again");
    }

    #[test]
    fn who_never_shows_the_keys_is_forgotten() {
        let mut session = SessionState::new(Instant::ZERO, &Config::default(), Role::Responder);
        let until = Instant::ZERO + UNCONFIRMED_TIMEOUT;
        session.silence(Instant::ZERO + KEEP_ALIVE + KEEP_ALIVE / RESPONDER_DELAY_PART);
        assert_eq!((session.deadline(), session.silence(until)), (until, SilenceAction::NeverConfirmed));
        assert!(session.on_heard(until) && session.is_confirmed());
        // Who began it waits as long: the other has forgotten it then.
        let mut session = SessionState::new(Instant::ZERO, &Config::default(), Role::Initiator);
        session.silence(Instant::ZERO + KEEP_ALIVE);
        assert_eq!((session.deadline(), session.silence(until)), (until, SilenceAction::Unanswered));
    }

    #[test]
    fn a_close_is_told_a_few_times_and_once_per_packet() {
        let at = Instant::from_millis;
        let mut session = SessionState::new(at(0), &Config::default(), Role::Initiator);
        session.close(at(0), 7, "done", Duration::from_millis(300));
        assert!(session.take_tell(at(0)) && !session.take_tell(at(0)));
        session.answer_close();
        assert!(session.take_tell(at(0)));
        let mut told = 0;
        while let Some(due) = session.closing_deadline() {
            session.wake_closing(due);
            told += u32::from(session.take_tell(due));
        }
        assert!(session.is_closed() && (2..12).contains(&told), "{told}");
    }

    #[test]
    fn a_close_of_the_peer_is_answered_once() {
        let at = Instant::from_millis;
        let mut session = SessionState::new(at(0), &Config::default(), Role::Initiator);
        session.confirm_close(at(5), 7, "done", Duration::from_millis(300));
        session.wake_closing(at(6));
        assert!(!session.is_closed() && session.take_tell(at(6)) && !session.take_tell(at(6)));
        assert_eq!(session.closing_deadline(), Some(at(6)));
        session.wake_closing(at(6));
        assert!(session.is_closed());
        // Nothing could be sent.
        session.confirm_close(at(5), 7, "done", Duration::from_millis(300));
        session.wake_closing(at(305));
        assert!(session.is_closed());
    }
}
