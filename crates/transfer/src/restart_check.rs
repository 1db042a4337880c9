//! Finds out whether a silent receiver was restarted, because a restarted one does not know the old
//! connection. The sender opens a second connection, without data. If the receiver answers only
//! there, it was restarted.

use byway_control::Class;
use byway_engine::connection::close;
use byway_engine::handshake::PublicKey;
use byway_engine::{Connect, Endpoint, EndpointEvent, Handle, RelayRoute};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// Silence after which the receiver is asked, and how often.
const ASK: Duration = Duration::from_secs(4);
/// A receiver that answered the question and says nothing more in the old connection for so long is
/// another one.
const GRACE: Duration = Duration::from_secs(3);

/// What to do about a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeAction {
    /// Nothing is to be done now.
    Wait,
    /// Try a second connection.
    Ask,
    /// The receiver is there and does not know the connection: begin anew, with what it has.
    Renew,
}

/// Whom to ask, and what to say.
#[derive(Clone)]
pub(crate) struct RestartQuestion {
    pub peer: PublicKey,
    pub addresses: Vec<SocketAddr>,
    /// Where it is met at relays, without what others offered: it knows of those only in the old
    /// connection.
    pub relays: Vec<RelayRoute>,
    pub application: Vec<u8>,
}

impl RestartQuestion {
    /// Asks in a connection of its own, over all ways that lead there. Without any, it is asked
    /// again later.
    fn ask(&self, endpoint: &mut Endpoint, now: Instant) -> Option<Handle> {
        let connect = Connect {
            peer: self.peer,
            addresses: self.addresses.clone(),
            application: self.application.clone(),
            controller: Class::Normal.controller(0),
        };
        let handle = endpoint.connect(now, connect).ok()?;
        for reach in &self.relays {
            endpoint.add_relay(now, handle, &reach.word, Some(reach));
        }
        Some(handle)
    }
}

/// Finds out whether the receiver of a connection was started anew.
pub(crate) struct RestartCheck {
    question: RestartQuestion,
    probe: SilenceProbe,
    /// The second connection, while there is one.
    asking: Option<Handle>,
}

impl RestartCheck {
    pub fn new(question: RestartQuestion) -> Self {
        Self { question, probe: SilenceProbe::default(), asking: None }
    }

    /// Takes in an event of the second connection; whether it is one.
    pub fn on_event(&mut self, event: &EndpointEvent, now: Instant) -> bool {
        match event {
            EndpointEvent::Connected(handle) if Some(*handle) == self.asking => self.probe.answered(now),
            EndpointEvent::Failed(handle, _) if Some(*handle) == self.asking => self.asking = None,
            _ => return false,
        }
        true
    }

    /// Looks after a silence so long; whether the receiver is another one by now.
    pub fn look(&mut self, endpoint: &mut Endpoint, now: Instant, silence: Duration) -> bool {
        let next = self.probe.judge(now, silence);
        if (next == ProbeAction::Ask || silence.is_zero())
            && let Some(handle) = self.asking.take()
        {
            endpoint.close(now, handle, close::DONE, "done");
        }
        if next == ProbeAction::Ask {
            self.asking = self.question.ask(endpoint, now);
        }
        next == ProbeAction::Renew
    }
}

/// What is known of a silence.
#[derive(Clone, Copy, Debug, Default)]
struct SilenceProbe {
    asked: Option<Instant>,
    answered: Option<Instant>,
}

impl SilenceProbe {
    /// What to do after so long a silence.
    fn judge(&mut self, now: Instant, silence: Duration) -> ProbeAction {
        if silence.is_zero() {
            *self = Self::default();
            return ProbeAction::Wait;
        }
        if let Some(at) = self.answered {
            // It was away for a moment if the old connection lives on.
            return if now.since(at) >= GRACE { ProbeAction::Renew } else { ProbeAction::Wait };
        }
        if silence < ASK || self.asked.is_some_and(|at| now.since(at) < ASK) {
            return ProbeAction::Wait;
        }
        self.asked = Some(now);
        ProbeAction::Ask
    }

    /// The receiver answered the question.
    fn answered(&mut self, now: Instant) {
        // An answer to what was asked in a silence that is over tells nothing.
        self.answered = self.asked.map(|_| now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_asked_about_and_only_another_receiver_renews() {
        let at = Instant::from_millis;
        let silent = Duration::from_millis;
        let mut probe = SilenceProbe::default();
        assert_eq!(probe.judge(at(1_000), silent(0)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(4_000), silent(3_000)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(5_000), silent(4_000)), ProbeAction::Ask);
        assert_eq!(probe.judge(at(6_000), silent(5_000)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(9_000), silent(8_000)), ProbeAction::Ask, "again: nobody was there");
        probe.answered(at(9_100));
        assert_eq!(probe.judge(at(10_000), silent(9_000)), ProbeAction::Wait);
        let mut lives = probe;
        assert_eq!(lives.judge(at(10_100), silent(0)), ProbeAction::Wait);
        assert_eq!(lives.judge(at(13_000), silent(100)), ProbeAction::Wait, "the line was down, and is up");
        lives.answered(at(13_000));
        assert_eq!(lives.judge(at(17_000), silent(4_000)), ProbeAction::Ask);
        assert_eq!(probe.judge(at(12_100), silent(11_100)), ProbeAction::Renew);
    }
}
