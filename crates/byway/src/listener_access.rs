//! Decides which peers may connect to a listener.

use crate::config::Priority;
use crate::loop_commands::Core;
use byway_engine::handshake;
use byway_engine::{Admission, Admit};
use byway_transfer::Secret;
use byway_transfer::application_protocol::Protocol;
use byway_transfer::close::CloseCode;
use byway_transfer::identity::PublicKey;
use byway_transfer::{ConnectionPurpose, FirstMessage, PreambleError};
use std::sync::Arc;

/// The reason why a peer is not admitted. The peer receives its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    /// The peer's first message is no application's.
    #[error(transparent)]
    Preamble(#[from] PreambleError),
    /// The peer's ticket is another listener's, or was replaced.
    #[error("the listener does not know this ticket (any more): ask for the one that it gives now")]
    UnknownTicket,
    /// The peer's key is not on the list.
    #[error("the listener admits only certain keys, and yours is not among them")]
    NotListed,
    /// The peer is a sender of files.
    #[error(
        "this is an application that speaks {0}, and takes no files from `byway send`: \
         send to the ticket that `byway recv` prints"
    )]
    NoFiles(Protocol),
    /// The peer speaks another protocol.
    #[error("the listener speaks {here}, and the other side {there}")]
    OtherProtocol {
        /// The protocol that the listener speaks.
        here: Protocol,
        /// The protocol that the peer speaks.
        there: Protocol,
    },
    /// The endpoint listens no more.
    #[error("nobody listens here any more")]
    Stopped,
}

impl Refusal {
    const fn code(self) -> CloseCode {
        match self {
            Self::Preamble(_) | Self::Stopped => CloseCode::Failed,
            Self::UnknownTicket | Self::NotListed => CloseCode::NotAdmitted,
            Self::NoFiles(_) | Self::OtherProtocol { .. } => CloseCode::OtherKind,
        }
    }
}

/// Admits peers that hold the ticket, are on the list if there is one, and speak the protocol.
pub struct ListenerAccess {
    /// The secret in the ticket, which a peer must present.
    pub permission: Secret<[u8; 16]>,
    /// The only keys admitted; empty: any.
    pub allow: Vec<PublicKey>,
    /// The application protocol that a peer must speak.
    pub protocol: Protocol,
    /// The priority of the data that is sent to admitted peers.
    pub priority: Priority,
    /// For the controllers.
    pub seed: u64,
    /// Whether anybody listens.
    pub core: Arc<Core>,
}

impl ListenerAccess {
    fn judge(&self, peer: handshake::PublicKey, said: &[u8]) -> Result<(), Refusal> {
        let said = FirstMessage::read(said)?;
        let permission = match &said {
            FirstMessage::Transfer(preamble) => &preamble.permission,
            FirstMessage::Application(application) => &application.permission,
        };
        // Both are looked at whatever the other says, so that time tells nothing about the
        // permission.
        let permitted = *permission == self.permission;
        let listed = self.allow.is_empty() || self.allow.iter().any(|key| key.0 == peer.0);
        if !permitted {
            return Err(Refusal::UnknownTicket);
        }
        if !listed {
            return Err(Refusal::NotListed);
        }
        match said {
            FirstMessage::Transfer(preamble) if preamble.kind == ConnectionPurpose::Ping => Ok(()),
            FirstMessage::Transfer(_) => Err(Refusal::NoFiles(self.protocol)),
            FirstMessage::Application(application) if application.protocol != self.protocol => {
                Err(Refusal::OtherProtocol { here: self.protocol, there: application.protocol })
            }
            FirstMessage::Application(_) if !self.core.is_listening() => Err(Refusal::Stopped),
            FirstMessage::Application(_) => Ok(()),
        }
    }
}

impl Admission for ListenerAccess {
    fn admit(&mut self, peer: handshake::PublicKey, said: &[u8]) -> Admit {
        match self.judge(peer, said) {
            Ok(()) => {
                self.seed = self.seed.wrapping_add(1);
                Admit::Accept(self.priority.controller(self.seed))
            }
            Err(refusal) => Admit::Reject { code: refusal.code().number(), reason: refusal.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::application_protocol::Application;

    fn gate() -> ListenerAccess {
        let control = byway_net::Control::new().unwrap();
        ListenerAccess {
            permission: Secret::new([1; 16]),
            allow: Vec::new(),
            protocol: "chat/1".parse().unwrap(),
            priority: Priority::Normal,
            seed: 0,
            core: Arc::new(Core::new(control.waker().clone(), true)),
        }
    }

    fn said(protocol: &str, permission: u8) -> Vec<u8> {
        let permission = Secret::new([permission; 16]);
        Application { permission, protocol: protocol.parse().unwrap() }.to_bytes()
    }

    fn files(kind: ConnectionPurpose) -> Vec<u8> {
        let permission = Secret::new([1; 16]);
        byway_transfer::Preamble { kind, permission, transfer: [0; 16] }.to_bytes().to_vec()
    }

    #[test]
    fn who_speaks_the_protocol_and_holds_the_ticket_comes_in() {
        let mut gate = gate();
        let judge = |gate: &ListenerAccess, said: &[u8]| gate.judge(handshake::PublicKey([5; 32]), said);
        assert_eq!(judge(&gate, &said("chat/1", 1)), Ok(()));
        assert_eq!(judge(&gate, &said("chat/1", 2)), Err(Refusal::UnknownTicket));
        let refusal = judge(&gate, &said("chat/2", 1)).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "the listener speaks the protocol chat/1, and the other side the protocol chat/2"
        );
        assert_eq!(refusal.code(), CloseCode::OtherKind);
        assert_eq!(judge(&gate, &files(ConnectionPurpose::Ping)), Ok(()));
        let refusal = judge(&gate, &files(ConnectionPurpose::Tree)).unwrap_err();
        assert_eq!((refusal, refusal.code()), (Refusal::NoFiles(gate.protocol), CloseCode::OtherKind));
        assert!(matches!(judge(&gate, b"nonsense"), Err(Refusal::Preamble(_))));
        gate.allow = vec![PublicKey([4; 32])];
        assert_eq!(judge(&gate, &said("chat/1", 1)), Err(Refusal::NotListed));
        gate.allow.push(PublicKey([5; 32]));
        assert_eq!(judge(&gate, &said("chat/1", 1)), Ok(()));
        gate.core.stop_listening();
        assert_eq!(judge(&gate, &said("chat/1", 1)), Err(Refusal::Stopped));
    }
}
