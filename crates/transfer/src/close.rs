//! The codes with which a transfer's connection is closed, in CLOSE and in the answer to a refused
//! HELLO. A code never changes its meaning.
//!
//! | code | name | who sends it | meaning |
//! |---|---|---|---|
//! | 0 | [`close::DONE_CODE`] | both | the closing side has nothing left to do: the transfer is complete, or it left early |
//! | 1 | [`CloseCode::Failed`] | both | the closing side cannot go on; the reason says why |
//! | 2 | [`CloseCode::OtherKind`] | receiver | it takes files and was sent a stream, or takes a stream and was sent files |
//! | 5 | [`CloseCode::Lost`] | sender | it no longer reaches the receiver that it began with |
//! | 6 | [`CloseCode::NotAdmitted`] | receiver | the ticket or the sender's key does not let it in |
//! | 7 | [`CloseCode::Damaged`] | nobody so far | what arrived is not what was sent |
//! | 8 | [`CloseCode::SessionKnown`] | receiver | to a question: the session that was asked about lives here |
//! | 9 | [`CloseCode::SessionUnknown`] | receiver | to a question: there is no such session here (any more) |
//! | 10 | [`CloseCode::Partial`] | sender | the transfer is complete, but for what the sender could not read |
//! | 130 | [`CloseCode::Interrupted`] | both | a person or a program stopped the closing side |
//! | 143 | [`CloseCode::Terminated`] | nobody any more | the same as 130 |
//!
//! Codes from 0x10001 on belong to the engine ([`close`]). An unknown code means the same as code
//! 1: the closing side cannot go on.

use crate::error::{NotConnected, TransferError};
use byway_engine::connection::close;
use byway_files::Printable;

/// Why a side closes a transfer's connection early. The module has the table of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CloseCode {
    /// The closing side cannot go on.
    Failed = 1,
    /// The receiver accepts only transfers of the other kind: files, or a stream.
    OtherKind = 2,
    /// The closing host got no more answers from the peer.
    Lost = 5,
    /// The receiver does not admit this sender.
    NotAdmitted = 6,
    /// The received data differ from the sent data.
    Damaged = 7,
    /// The receiver has the session that the sender asked about.
    SessionKnown = 8,
    /// The receiver does not have the session that the sender asked about.
    SessionUnknown = 9,
    /// The transfer is complete, except for files that the sender could not read.
    Partial = 10,
    /// The closing side was stopped.
    Interrupted = 130,
    /// The closing side was stopped by SIGTERM. Only earlier versions send this code.
    Terminated = 143,
}

impl CloseCode {
    const ALL: [Self; 10] = [
        Self::Failed,
        Self::OtherKind,
        Self::Lost,
        Self::NotAdmitted,
        Self::Damaged,
        Self::SessionKnown,
        Self::SessionUnknown,
        Self::Partial,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// The code's number on the wire.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// The code with this number on the wire. `None`: the table does not have it.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }
}

/// The code to close with when this side ends with `error`.
pub(crate) const fn code_of(error: &TransferError) -> CloseCode {
    use TransferError as E;
    match error {
        E::Cancelled | E::Stopped | E::ByteLimit => CloseCode::Interrupted,
        E::ConnectionLost
        | E::Standstill
        | E::QuotaUsedUp(_)
        | E::SessionForgotten
        | E::StreamForgotten
        | E::PeerInterrupted
        | E::PeerLeft
        | E::NotConnected(NotConnected::NoAnswer(_) | NotConnected::ReceiverFull) => CloseCode::Lost,
        E::NotAdmitted(_) | E::NotConnected(NotConnected::OtherKey) => CloseCode::NotAdmitted,
        E::OtherKind(_) | E::NotConnected(NotConnected::ImpossibleKey) => CloseCode::OtherKind,
        E::PeerFoundDamage(_) => CloseCode::Damaged,
        E::ConnectionBroke(_)
        | E::NotConnected(NotConnected::OtherVersion)
        | E::PeerFailed(_)
        | E::ThreadDied(_)
        | E::Input(_)
        | E::Output(_)
        | E::OutputClosed
        | E::StreamRefused
        | E::StreamCutShort
        | E::OtherStream { .. }
        | E::Receipt
        | E::Reports(_)
        | E::Sink(_)
        | E::TargetRefused { .. }
        | E::TargetReset(_)
        | E::Unfinished => CloseCode::Failed,
    }
}

/// The code and the reason with which this side ends a session after `outcome`.
pub(crate) fn goodbye(outcome: &Result<(), TransferError>) -> (u64, String) {
    match outcome {
        Ok(()) => (close::DONE_CODE, String::from("done")),
        Err(error) => (code_of(error).number(), error.to_string()),
    }
}

/// Returns the error for a connection that ended too early, from the code and reason of its end.
/// `by_peer`: the peer closed it. Otherwise this host ended it, perhaps without a CLOSE.
pub(crate) fn error_of(code: u64, reason: &str, by_peer: bool) -> TransferError {
    // It may be the peer's text: one line, whatever that holds.
    let reason = Printable(reason.as_bytes()).to_string();
    let stopped =
        matches!(CloseCode::from_number(code), Some(CloseCode::Interrupted | CloseCode::Terminated));
    match (code, by_peer) {
        (close::IDLE_CODE, _) => TransferError::ConnectionLost,
        (close::STANDSTILL_CODE, false) => TransferError::Standstill,
        (_, false) if stopped => TransferError::Stopped,
        (_, false) => TransferError::ConnectionBroke(reason),
        (close::DONE_CODE, true) => TransferError::PeerLeft,
        (_, true) => match CloseCode::from_number(code) {
            Some(CloseCode::OtherKind) => TransferError::OtherKind(reason),
            Some(CloseCode::NotAdmitted) => TransferError::NotAdmitted(reason),
            Some(CloseCode::Damaged) => TransferError::PeerFoundDamage(reason),
            Some(CloseCode::Interrupted | CloseCode::Terminated) => TransferError::PeerInterrupted,
            Some(
                CloseCode::Failed
                | CloseCode::Lost
                | CloseCode::SessionKnown
                | CloseCode::SessionUnknown
                | CloseCode::Partial,
            )
            | None => TransferError::PeerFailed(reason),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_on_the_wire_are_frozen() {
        let numbers = CloseCode::ALL.map(CloseCode::number);
        assert_eq!(numbers, [1, 2, 5, 6, 7, 8, 9, 10, 130, 143]);
        for code in CloseCode::ALL {
            assert_eq!(CloseCode::from_number(code.number()), Some(code));
        }
        assert_eq!([0, 3, 129, close::IDLE_CODE].map(CloseCode::from_number), [None; 4]);
    }

    #[test]
    fn what_the_other_side_closes_with_says_what_went_wrong_here() {
        let said = |code| error_of(code, "why", true).to_string();
        assert_eq!((said(2), said(6)), ("why".into(), "why".into()));
        for code in [1, 5, 7, 99, close::VIOLATION_CODE] {
            assert_eq!(said(code), "the other side ended the transfer: why");
        }
        assert!(said(130).starts_with("the other side was interrupted;") && said(143) == said(130));
        assert!(said(close::DONE_CODE).starts_with("the other side closed before the transfer was complete"));
        assert!(matches!(error_of(130, "", false), TransferError::Stopped));
        assert!(matches!(error_of(6, "", false), TransferError::ConnectionBroke(_)));
        assert!(matches!(error_of(close::IDLE_CODE, "", false), TransferError::ConnectionLost));
        assert_eq!(error_of(6, "a\x1b[2Jb", true).to_string().lines().count(), 1);
        assert!(!error_of(6, "a\x1b[2Jb", true).to_string().contains('\x1b'));
    }
}
