//! Decides which senders may send here.

use crate::close::CloseCode;
use crate::hello_preamble::{ConnectionPurpose, Preamble, PreambleError};
use crate::identity;
use crate::secret::Secret;
use byway_control::Class;
use byway_engine::handshake::PublicKey;
use byway_engine::{Admission, Admit};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Why a sender is not admitted, as the sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refusal {
    /// The peer's first message is no sender's.
    #[error(transparent)]
    Preamble(#[from] PreambleError),
    /// The peer's ticket is another receiver's, or was replaced.
    #[error("the receiver does not know this ticket (any more): ask for the one that it prints now")]
    UnknownTicket,
    /// The peer's key is not on the list.
    #[error(
        "the receiver admits only certain keys and yours is not among them: \
         let it run with `--allow` and what `byway id` prints here"
    )]
    NotListed,
    /// The ticket is bound to another key.
    #[error(
        "this ticket belongs to another sender, who completed a transfer with it: \
         let the receiver run with `--new-ticket`, or with `--allow` and what `byway id` prints here"
    )]
    OtherOwner,
    /// The peer sends a stream, and the receiver takes files.
    #[error("the receiver writes files and cannot take a stream: let it run `byway recv -`")]
    NoStreams,
    /// The peer sends files, and the receiver takes a stream.
    #[error("the receiver takes a stream and no files: send `-`, or let it run `byway recv DIR`")]
    NoFiles,
    /// The peer wants connections, and the receiver makes none.
    #[error("the receiver connects nobody to anything: let it run with `--allow-forward HOST:PORT`")]
    NoForwards,
    /// The receiver takes only one transfer, and has already had it.
    #[error("the receiver takes one transfer only, and has it")]
    Taken,
    /// The receiver has the largest permitted number of transfers.
    #[error("the receiver has as many transfers as it takes: try again later")]
    TooMany,
}

impl Refusal {
    /// The code with which the connection is closed.
    pub const fn code(self) -> CloseCode {
        match self {
            Self::Preamble(PreambleError::Application(_)) => CloseCode::OtherKind,
            Self::Preamble(_) | Self::Taken | Self::TooMany => CloseCode::Failed,
            Self::UnknownTicket | Self::NotListed | Self::OtherOwner | Self::NoForwards => {
                CloseCode::NotAdmitted
            }
            Self::NoStreams | Self::NoFiles => CloseCode::OtherKind,
        }
    }
}

/// Admits a sender whose HELLO has the ticket's permission, and whose key is on the list of allowed
/// keys, if there is one. Stores nothing about an admitted sender, because a HELLO may be a replay.
pub(crate) struct AccessControl {
    /// The secret in the ticket, which a sender must present.
    pub permission: Secret<[u8; 16]>,
    /// The only keys admitted; empty: the one that `owner` holds, or any as long as it holds none.
    pub allow: Vec<identity::PublicKey>,
    /// The owner of the ticket.
    pub owner: TicketOwner,
    /// The kind of transfer that is accepted: a tree or a stream.
    pub kind: ConnectionPurpose,
    /// Whether the receiver connects senders' programs to targets.
    pub forwards: bool,
    /// The only transfer that is accepted, if there is one.
    pub single_transfer: SingleTransfer,
    /// The seed of the congestion controllers.
    pub seed: u64,
}

/// For a receiver that takes only one transfer: that transfer, once it has begun. A repeated try of
/// the same transfer is admitted. Its sender may have been killed and restarted, which the receiver
/// does not notice.
#[derive(Clone, Debug, Default)]
pub(crate) struct SingleTransfer(Arc<Mutex<Option<Transfer>>>);

/// The sender that a ticket is bound to: the first that completed a transfer with it. The receiver
/// sets it, access control reads it, and the program saves it.
#[derive(Clone, Debug, Default)]
pub struct TicketOwner(Arc<Mutex<Option<identity::PublicKey>>>);

impl TicketOwner {
    /// Makes the owner of a ticket that an earlier run printed.
    #[must_use]
    pub fn new(owner: Option<identity::PublicKey>) -> Self {
        Self(Arc::new(Mutex::new(owner)))
    }

    /// Returns the sender to which the ticket is bound. `None`: it is not bound yet.
    #[must_use]
    pub fn key(&self) -> Option<identity::PublicKey> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds the ticket to `sender`, unless it is already bound.
    pub fn bind(&self, sender: identity::PublicKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(sender);
    }
}

/// The sender's public key, and its id of the transfer.
type Transfer = (PublicKey, [u8; 16]);

impl SingleTransfer {
    /// Accepts only this transfer from now on. `None`: any.
    pub fn set(&self, transfer: Option<Transfer>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = transfer;
    }

    /// Whether only another transfer is accepted.
    pub fn shuts_out(&self, peer: PublicKey, transfer: [u8; 16]) -> bool {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.is_some_and(|taken| taken != (peer, transfer))
    }
}

impl AccessControl {
    /// In which class to send to whom is let in.
    fn judge(&self, peer: PublicKey, said: &[u8]) -> Result<Class, Refusal> {
        let preamble = Preamble::read(said)?;
        // Both are looked at whatever the other says, so that time tells nothing about the
        // permission.
        let permitted = preamble.permission == self.permission;
        let listed = self.allow.is_empty() || self.allow.iter().any(|key| key.0 == peer.0);
        let owns = !self.allow.is_empty() || self.owner.key().is_none_or(|owner| owner.0 == peer.0);
        if !permitted {
            return Err(Refusal::UnknownTicket);
        }
        if !listed {
            return Err(Refusal::NotListed);
        }
        if !owns {
            return Err(Refusal::OtherOwner);
        }
        match (preamble.kind, self.kind) {
            (ConnectionPurpose::Ping, _) => Ok(Class::Normal),
            (ConnectionPurpose::Forward(class), _) if self.forwards => Ok(class),
            (ConnectionPurpose::Forward(_), _) => Err(Refusal::NoForwards),
            (ConnectionPurpose::Pipe, ConnectionPurpose::Tree) => Err(Refusal::NoStreams),
            (ConnectionPurpose::Tree | ConnectionPurpose::Look, ConnectionPurpose::Pipe) => {
                Err(Refusal::NoFiles)
            }
            _ if self.single_transfer.shuts_out(peer, preamble.transfer) => Err(Refusal::Taken),
            // What goes back is small: reports and acknowledgements.
            _ => Ok(Class::Normal),
        }
    }
}

impl Admission for AccessControl {
    fn admit(&mut self, peer: PublicKey, said: &[u8]) -> Admit {
        match self.judge(peer, said) {
            Ok(class) => {
                self.seed = self.seed.wrapping_add(1);
                Admit::Accept(class.controller(self.seed))
            }
            Err(refusal) => Admit::Reject { code: refusal.code().number(), reason: refusal.to_string() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application_protocol::Application;

    fn gate() -> AccessControl {
        AccessControl {
            permission: Secret::new([1; 16]),
            allow: Vec::new(),
            owner: TicketOwner::default(),
            kind: ConnectionPurpose::Tree,
            forwards: false,
            single_transfer: SingleTransfer::default(),
            seed: 0,
        }
    }

    fn said(kind: ConnectionPurpose, permission: u8) -> Vec<u8> {
        Preamble { kind, permission: Secret::new([permission; 16]), transfer: [0; 16] }.to_bytes()
    }

    fn refusal(gate: &AccessControl, said: &[u8]) -> Option<Refusal> {
        gate.judge(PublicKey([5; 32]), said).err()
    }

    #[test]
    fn only_who_holds_the_ticket_and_is_on_the_list_comes_in() {
        let mut gate = gate();
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), None);
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 2)), Some(Refusal::UnknownTicket));
        assert_eq!(refusal(&gate, b"nonsense"), Some(Refusal::Preamble(PreambleError::Version(b'n'))));
        gate.allow = vec![identity::PublicKey([4; 32])];
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), Some(Refusal::NotListed));
        gate.allow.push(identity::PublicKey([5; 32]));
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), None);
    }

    #[test]
    fn connections_are_made_only_where_they_are_allowed_and_in_the_class_asked_for() {
        let mut gate = gate();
        let asked = |class| said(ConnectionPurpose::Forward(class), 1);
        assert_eq!(refusal(&gate, &asked(Class::Normal)), Some(Refusal::NoForwards));
        gate.forwards = true;
        for class in [Class::Normal, Class::Background] {
            assert_eq!(gate.judge(PublicKey([5; 32]), &asked(class)), Ok(class));
        }
        assert_eq!(
            refusal(&gate, &said(ConnectionPurpose::Forward(Class::Normal), 2)),
            Some(Refusal::UnknownTicket)
        );
    }

    #[test]
    fn a_ticket_that_has_an_owner_is_no_other_senders() {
        let mut gate = gate();
        let (peer, other) = (identity::PublicKey([5; 32]), identity::PublicKey([4; 32]));
        gate.owner.clone().bind(peer);
        gate.owner.bind(other);
        assert_eq!(
            (gate.owner.key(), refusal(&gate, &said(ConnectionPurpose::Tree, 1))),
            (Some(peer), None),
            "the first"
        );
        gate.owner = TicketOwner::new(Some(other));
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), Some(Refusal::OtherOwner));
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Ping, 1)), Some(Refusal::OtherOwner));
        // A key that is named need not be the first.
        gate.allow = vec![peer];
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), None);
    }

    #[test]
    fn the_other_kind_and_one_too_many_are_told_so() {
        let mut gate = gate();
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Pipe, 1)), Some(Refusal::NoStreams));
        gate.single_transfer.set(Some((PublicKey([5; 32]), [9; 16])));
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), Some(Refusal::Taken));
        gate.single_transfer.set(Some((PublicKey([5; 32]), [0; 16])));
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), None, "another try of the same");
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Ping, 1)), None);
        gate.kind = ConnectionPurpose::Pipe;
        assert_eq!(refusal(&gate, &said(ConnectionPurpose::Tree, 1)), Some(Refusal::NoFiles));
        let protocol = "chat/1".parse().unwrap();
        let application = Application { permission: Secret::new([1; 16]), protocol };
        let refusal = refusal(&gate, &application.to_bytes()).unwrap();
        assert_eq!(refusal, Refusal::Preamble(PreambleError::Application(protocol)));
        assert_eq!(refusal.code(), CloseCode::OtherKind);
        assert!(refusal.to_string().contains("speaks the protocol chat/1"), "{refusal}");
    }
}
