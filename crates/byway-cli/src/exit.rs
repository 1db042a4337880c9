//! How a command ends: the exit codes, and which failure has which.

use crate::units::UnitError;
use byway_files::SourceError;
use byway_forward::stream_request::Refusal as Refused;
use byway_registry::registry_client::AskError;
use byway_registry::word::RegistryWordError;
use byway_transfer::identity::KeyError;
use byway_transfer::limits::local_clock::LocalClockError;
use byway_transfer::local_address::NoLocalAddress;
use byway_transfer::receiver_addresses::NoHost;
use byway_transfer::secret_words::NoWord;
use byway_transfer::settings::PeerError;
use byway_transfer::state_directory::StateError;
use byway_transfer::ticket::TicketError;
use byway_transfer::{Error as StartError, NotConnected, TransferError, WordOperatorError};
use byway_wire::relay::RelayWordError;
use clap::ValueEnum;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes that scripts can rely on. Help and manual pages print the comments of the
/// variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[repr(u8)]
pub enum Exit {
    /// All was done, or SIGTERM stopped a service
    Ok = 0,
    /// A failure without a code of its own
    Error = 1,
    /// Usage: an unknown option, a mistyped ticket
    Usage = 2,
    /// A path on the command line does not exist
    NotFound = 3,
    /// Done in part: some files were not read or written
    Partial = 4,
    /// The network failed, or the peer went away
    Network = 5,
    /// Not authorised: an expired ticket, a key that is not listed
    NotAuthorised = 6,
    /// What arrived differs from what was sent
    Integrity = 7,
    /// A limit of time or bytes ended it: --stop-at, --max-transfer
    LimitReached = 8,
    /// Stopped by SIGHUP: the terminal was closed
    HungUp = 129,
    /// Stopped by SIGINT
    Interrupted = 130,
    /// Stopped by SIGTERM; a service ends with 0
    Terminated = 143,
}

impl Exit {
    /// Returns the meaning of the code, as in the help and the manual pages.
    #[must_use]
    pub fn meaning(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns the failure of a verb that this build does not have. `sentence` names the build that has
/// it.
///
/// # Errors
/// Always.
pub fn absent<T>(sentence: &str) -> anyhow::Result<T> {
    Err(Failure::new(Exit::Usage, sentence).into())
}

/// A failure: its exit code, and a sentence that says what failed, where, and what to do.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    sentence: String,
}

impl Failure {
    /// Makes a failure with the exit code `exit`. `sentence` tells the user what happened. It has
    /// no capital and no full stop, because it is printed after `byway: `.
    #[must_use]
    pub fn new(exit: Exit, sentence: impl Into<String>) -> Self {
        Self { exit, sentence: sentence.into() }
    }

    /// The exit code of this failure.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}

impl Exit {
    /// Returns the exit code for an error of a question to a registry.
    #[must_use]
    pub const fn of_registry(error: &AskError) -> Self {
        if let AskError::Refused(_) = error { Self::NotAuthorised } else { Self::Network }
    }

    /// The exit code of a service, a program that runs until it is stopped. Service managers stop a
    /// service by SIGTERM. So the code for SIGTERM, `Terminated`, becomes `Ok`.
    #[must_use]
    pub const fn of_service(self) -> Self {
        match self {
            Self::Terminated => Self::Ok,
            other => other,
        }
    }

    /// Returns the exit code of an error: the code of the outermost [`Failure`] in its chain, or
    /// else the code that its cause suggests.
    #[must_use]
    pub fn of(error: &anyhow::Error) -> Self {
        // `downcast_ref` on the whole also finds a `Failure` that was attached with `context`.
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return failure.exit;
        }
        error.chain().find_map(Self::of_cause).unwrap_or(Self::Error)
    }

    /// The exit code of a transfer that did not complete.
    #[must_use]
    pub const fn of_transfer(error: &TransferError) -> Self {
        use TransferError as E;
        match error {
            E::Cancelled | E::Stopped => Self::Interrupted,
            E::NotConnected(NotConnected::NoAnswer(_) | NotConnected::ReceiverFull)
            | E::ConnectionLost
            | E::Standstill
            | E::QuotaUsedUp(_)
            | E::SessionForgotten
            | E::StreamForgotten
            | E::PeerInterrupted
            | E::PeerLeft => Self::Network,
            E::NotConnected(NotConnected::OtherKey) | E::NotAdmitted(_) => Self::NotAuthorised,
            E::NotConnected(NotConnected::ImpossibleKey) | E::OtherKind(_) => Self::Usage,
            E::PeerFoundDamage(_) => Self::Integrity,
            E::ByteLimit => Self::LimitReached,
            E::NotConnected(NotConnected::OtherVersion)
            | E::ConnectionBroke(_)
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
            | E::Unfinished => Self::Error,
            E::TargetReset(_) => Self::Network,
            E::TargetRefused { refusal, .. } => match refusal {
                Refused::Forbidden | Refused::Near => Self::NotAuthorised,
                Refused::Failed => Self::Error,
                _ => Self::Network,
            },
        }
    }

    fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Self> {
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            return Some(failure.exit);
        }
        if let Some(error) = cause.downcast_ref::<PeerError>()
            && error.is_usage()
        {
            return Some(Self::Usage);
        }
        if let Some(error) = cause.downcast_ref::<NoWord>() {
            return error.is_mistyped().then_some(Self::Usage);
        }
        if cause.is::<LocalClockError>() || cause.downcast_ref().is_some_and(WordOperatorError::is_usage) {
            return Some(Self::Usage);
        }
        let mistyped = cause.is::<TicketError>() || cause.is::<RelayWordError>() || cause.is::<KeyError>();
        if mistyped || cause.is::<UnitError>() || cause.is::<RegistryWordError>() || cause.is::<NoHost>() {
            return Some(Self::Usage);
        }
        #[cfg(feature = "gateway")]
        if cause.downcast_ref().is_some_and(byway_gateway_host::GatewayError::is_usage) {
            return Some(Self::Usage);
        }
        #[cfg(feature = "gateway")]
        if let Some(byway_gateway_host::plumbing::PlumbingError::NoPrivilege) = cause.downcast_ref() {
            return Some(Self::NotAuthorised);
        }
        if let Some(error) = cause.downcast_ref() {
            return Some(Self::of_transfer(error));
        }
        if let Some(StartError::Transfer(error)) = cause.downcast_ref() {
            return Some(Self::of_transfer(error));
        }
        if let Some(error) = cause.downcast_ref::<NoLocalAddress>() {
            return match error {
                NoLocalAddress::Unknown { .. } => Some(Self::Usage),
                NoLocalAddress::Addressless(_) => Some(Self::Network),
                NoLocalAddress::NotListed(_) => None,
            };
        }
        if let Some(StateError::NoHome) = cause.downcast_ref() {
            return Some(Self::Usage);
        }
        let of_start = || {
            cause.downcast_ref().and_then(|it| if let StartError::Source(it) = it { Some(it) } else { None })
        };
        match cause.downcast_ref().or_else(of_start) {
            Some(SourceError::NotFound(_)) => return Some(Self::NotFound),
            Some(SourceError::SameName(..)) => return Some(Self::Usage),
            _ => {}
        }
        match cause.downcast_ref::<io::Error>()?.kind() {
            io::ErrorKind::NotFound => Some(Self::NotFound),
            // Whoever read our standard output has seen enough, as with `byway … | head -1`.
            io::ErrorKind::BrokenPipe => Some(Self::Ok),
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused => Some(Self::Network),
            _ => None,
        }
    }
}

/// Returns the text of an error for the user: its causes from the outermost on, each once.
#[must_use]
pub fn sentence(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| {
        let cause = cause.to_string();
        match told.is_empty() {
            true => cause,
            false if told.ends_with(&cause) => told,
            false => format!("{told}: {cause}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};
    use byway_transfer::NoAnswer;
    use byway_wire::relay::Reason;

    #[test]
    fn the_nearest_failure_gives_the_code() {
        let refused = || anyhow::Error::new(Failure::new(Exit::NotAuthorised, "the ticket has expired"));
        assert_eq!(Exit::of(&refused()), Exit::NotAuthorised);
        assert_eq!(Exit::of(&refused().context("sending")), Exit::NotAuthorised);
        let wrapped = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe))
            .context(Failure::new(Exit::Error, "the reader of the stream has gone"));
        assert_eq!(Exit::of(&wrapped), Exit::Error, "a failure in front of a broken pipe is a failure");
    }

    #[test]
    fn a_cause_that_is_told_already_is_not_told_again() {
        let taken = || io::Error::from(io::ErrorKind::AddrInUse);
        let address = "127.0.0.1:8730".parse().unwrap();
        for (error, sentence) in [
            (StartError::Listen { address, source: taken() }.into(), "cannot listen on TCP 127.0.0.1:8730: "),
            (StartError::Thread(taken()).into(), "cannot start a thread: "),
            (anyhow::Error::from(taken()).context("--http"), "--http: "),
        ] {
            assert_eq!(super::sentence(&error), format!("{sentence}{}", taken()));
        }
    }

    #[test]
    fn a_service_ends_well_by_sigterm_alone() {
        for (exit, of_service) in [
            (Exit::Terminated, Exit::Ok),
            (Exit::Interrupted, Exit::Interrupted),
            (Exit::HungUp, Exit::HungUp),
        ] {
            assert_eq!(exit.of_service(), of_service);
        }
    }

    #[test]
    fn each_way_in_which_a_transfer_ends_has_a_code() {
        for (error, exit) in [
            (TransferError::Cancelled, Exit::Interrupted),
            (TransferError::ConnectionLost, Exit::Network),
            (TransferError::Standstill, Exit::Network),
            (TransferError::QuotaUsedUp(Reason::RelayQuota), Exit::Network),
            (TransferError::PeerInterrupted, Exit::Network),
            (TransferError::OtherKind(String::new()), Exit::Usage),
            (TransferError::NotAdmitted(String::new()), Exit::NotAuthorised),
            (TransferError::PeerFoundDamage(String::new()), Exit::Integrity),
            (TransferError::PeerFailed(String::new()), Exit::Error),
            (TransferError::ByteLimit, Exit::LimitReached),
            (NotConnected::NoAnswer(NoAnswer::Silent).into(), Exit::Network),
            (NotConnected::OtherKey.into(), Exit::NotAuthorised),
            (NotConnected::OtherVersion.into(), Exit::Error),
            (NotConnected::ReceiverFull.into(), Exit::Network),
            (NotConnected::ImpossibleKey.into(), Exit::Usage),
            (TransferError::Output(io::ErrorKind::BrokenPipe.into()), Exit::Error),
        ] {
            assert_eq!(Exit::of_transfer(&error), exit, "{error:?}");
            assert_eq!(Exit::of(&StartError::Transfer(error).into()), exit);
        }
    }

    #[test]
    fn causes_without_a_code_of_their_own_are_sorted() {
        let of = |error: anyhow::Error| Exit::of(&error.context("trying"));
        assert_eq!(of(io::Error::from(io::ErrorKind::NotFound).into()), Exit::NotFound);
        assert_eq!(of(io::Error::from(io::ErrorKind::BrokenPipe).into()), Exit::Ok);
        assert_eq!(of(io::Error::from(io::ErrorKind::NetworkUnreachable).into()), Exit::Network);
        assert_eq!(of(io::Error::from(io::ErrorKind::AddrInUse).into()), Exit::Error);
        assert_eq!(of(SourceError::NotFound("x".into()).into()), Exit::NotFound);
        assert_eq!(of(SourceError::Nothing.into()), Exit::Error);
        assert_eq!(of(StartError::Source(SourceError::NotFound("x".into())).into()), Exit::NotFound);
        assert_eq!(of(StateError::NoHome.into()), Exit::Usage);
        assert_eq!(of(TicketError::Mistyped.into()), Exit::Usage);
        assert_eq!(of(UnitError::Zero.into()), Exit::Usage);
        assert_eq!(of(LocalClockError::NotBuilt.into()), Exit::Usage);
        assert_eq!(of(RelayWordError::Checksum.into()), Exit::Usage);
        assert_eq!(of(anyhow!("anything else")), Exit::Error);
        let read: anyhow::Result<()> = Err(KeyError::Mistyped).context("--allow");
        assert_eq!(read.map_err(|error| Exit::of(&error)), Err(Exit::Usage));
    }
}
