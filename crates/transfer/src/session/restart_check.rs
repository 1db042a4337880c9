//! Finds out whether a silent receiver still has a session. The sender opens a second connection,
//! without data, that names the session. The receiver answers there whether it has it. It has not
//! if it was restarted, or if it heard nothing for too long: it does not say which. That the first
//! connection is silent and the second is not proves nothing: a NAT or a box on the way may have
//! forgotten the first one only.

use crate::close::CloseCode;
use byway_control::Class;
use byway_engine::connection::{Event, close};
use byway_engine::handshake::PublicKey;
use byway_engine::{Connect, Endpoint, EndpointEvent, Handle, RelayRoute};
use byway_wire::{Duration, Instant};
use std::net::SocketAddr;

/// The silence after which the receiver is asked whether it still has the session, and the time
/// between two such questions.
const ASK_INTERVAL: Duration = Duration::from_secs(4);

/// The reaction to a silent receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbeAction {
    /// Nothing is to be done now.
    Wait,
    /// Try a second connection.
    Ask,
    /// The receiver is running and does not have the session: begin a new one.
    Renew,
}

/// The question to a silent receiver whether it still has the session: the receiver's key and
/// relays, and the first message.
#[derive(Clone)]
pub(crate) struct RestartQuestion {
    pub peer: PublicKey,
    /// The relays that lead to the receiver. Relays that a peer offered in the old connection are
    /// left out.
    pub relays: Vec<RelayRoute>,
    /// A ping that names the session.
    pub application: Vec<u8>,
}

impl RestartQuestion {
    /// Opens a second connection to ask the receiver. `None`: no address or relay leads there now.
    fn ask(&self, endpoint: &mut Endpoint, addresses: &[SocketAddr], now: Instant) -> Option<Handle> {
        let connect = Connect {
            peer: self.peer,
            addresses: addresses.to_vec(),
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

/// Finds out whether the receiver of a connection no longer knows the session.
pub(crate) struct RestartCheck {
    question: RestartQuestion,
    probe: SilenceProbe,
    /// The second connection. `None`: there is none.
    asking: Option<Handle>,
}

impl RestartCheck {
    pub fn new(question: RestartQuestion) -> Self {
        Self { question, probe: SilenceProbe::default(), asking: None }
    }

    /// Handles an event of the second connection. Returns whether it was one.
    pub fn on_event(&mut self, endpoint: &mut Endpoint, event: &EndpointEvent) -> bool {
        match event {
            EndpointEvent::Connected(handle) if Some(*handle) == self.asking => {}
            EndpointEvent::Failed(handle, _) if Some(*handle) == self.asking => self.asking = None,
            EndpointEvent::Closed(handle) if Some(*handle) == self.asking => {
                self.hear(endpoint);
                endpoint.forget(*handle);
                self.asking = None;
            }
            _ => return false,
        }
        true
    }

    /// Looks after `silence`, and may ask at the receiver's `addresses`. Returns whether the
    /// receiver does not have the session.
    pub fn look(
        &mut self,
        endpoint: &mut Endpoint,
        addresses: &[SocketAddr],
        now: Instant,
        silence: Duration,
    ) -> bool {
        self.hear(endpoint);
        let next = self.probe.judge(now, silence);
        if (next == ProbeAction::Ask || silence.is_zero())
            && let Some(handle) = self.asking.take()
        {
            endpoint.close(now, handle, close::DONE_CODE, "done");
        }
        if next == ProbeAction::Ask {
            self.asking = self.question.ask(endpoint, addresses, now);
        }
        next == ProbeAction::Renew
    }

    /// Handles the receiver's answer on the second connection.
    fn hear(&mut self, endpoint: &mut Endpoint) {
        let Some(connection) = self.asking.and_then(|handle| endpoint.connection_mut(handle)) else { return };
        while let Some(event) = connection.next_event() {
            if let Event::Closed { code, by_peer: true, .. } = event {
                self.probe.is_unknown |= denies(code);
            }
        }
    }
}

/// Whether an answer with this code says that the session is over. So does a refusal: the session
/// that is begun then gets the same one, and its reason.
fn denies(code: u64) -> bool {
    matches!(CloseCode::from_number(code), Some(CloseCode::SessionUnknown | CloseCode::NotAdmitted))
}

/// The state of one silence of the receiver.
#[derive(Clone, Copy, Debug, Default)]
struct SilenceProbe {
    asked: Option<Instant>,
    /// Whether the receiver replied that it does not have the session.
    is_unknown: bool,
}

impl SilenceProbe {
    /// Returns the reaction to a silence of this length.
    fn judge(&mut self, now: Instant, silence: Duration) -> ProbeAction {
        if silence.is_zero() {
            // An answer to what was asked in a silence that is over tells nothing.
            *self = Self::default();
            return ProbeAction::Wait;
        }
        if self.is_unknown {
            return ProbeAction::Renew;
        }
        // A receiver that had the session a while ago may be restarted now.
        if silence < ASK_INTERVAL || self.asked.is_some_and(|at| now.since(at) < ASK_INTERVAL) {
            return ProbeAction::Wait;
        }
        self.asked = Some(now);
        ProbeAction::Ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_asked_about_and_only_who_does_not_have_the_session_renews() {
        let at = Instant::from_millis;
        let silent = Duration::from_millis;
        let mut probe = SilenceProbe::default();
        assert_eq!(probe.judge(at(1_000), silent(0)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(4_000), silent(3_000)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(5_000), silent(4_000)), ProbeAction::Ask);
        assert_eq!(probe.judge(at(6_000), silent(5_000)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(9_000), silent(8_000)), ProbeAction::Ask, "again: nobody was there");
        assert!(
            !denies(CloseCode::SessionKnown.number())
                && !denies(close::DONE_CODE)
                && !denies(close::IDLE_CODE)
        );
        assert_eq!(probe.judge(at(12_000), silent(11_000)), ProbeAction::Wait, "the receiver has it");
        assert_eq!(probe.judge(at(13_000), silent(12_000)), ProbeAction::Ask, "it may be restarted later");
        assert!(denies(CloseCode::SessionUnknown.number()) && denies(CloseCode::NotAdmitted.number()));
        probe.is_unknown = true;
        let mut lives = probe;
        assert_eq!(lives.judge(at(13_100), silent(0)), ProbeAction::Wait, "the old session lives");
        assert_eq!(lives.judge(at(17_000), silent(3_900)), ProbeAction::Wait);
        assert_eq!(probe.judge(at(13_100), silent(12_100)), ProbeAction::Renew);
    }
}
