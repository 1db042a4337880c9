//! `byway forward --stdio`: standard input and output are one connection.

use super::limit_control::LimitControl;
use super::transfer_events::absence_reason;
use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::Output;
use crate::signals::{SIGNAL_POLL_INTERVAL, Signals};
use anyhow::{Context as _, Result};
use byway_forward::forward_target::Target;
use byway_transfer::{Forwarding, PipedConnection, TransferError, TransferEvent};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Takes standard input and output, and puts `/dev/null` in their place. So nothing else is written
/// to them, and their reader notices when they are closed.
pub(super) fn take(target: Target) -> Result<PipedConnection> {
    let take = || -> io::Result<(OwnedFd, OwnedFd)> {
        let taken = (stdin().try_clone_to_owned()?, stdout().try_clone_to_owned()?);
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        Ok(taken)
    };
    let (input, output) = take().context(messages::forward::CANNOT_TAKE_STDIO)?;
    Ok(PipedConnection { target, input, output })
}

/// Waits until the connection ends. Only `-v` shows warnings meanwhile.
pub(super) fn follow(
    forwarding: Forwarding,
    target: &Target,
    signals: &Signals,
    mut limits: LimitControl,
    output: &mut Output,
) -> Result<Exit> {
    let mut stop = None;
    loop {
        let news = forwarding.next(SIGNAL_POLL_INTERVAL);
        if let Some(TransferEvent::Warning(sentence)) = &news {
            output.detail(sentence);
        }
        limits.look(signals, &forwarding, output);
        if limits.limits().down.is_some() {
            // What may be taken grows with time, and nothing else may happen meanwhile.
            forwarding.control().waker().wake();
        }
        if stop.is_none() {
            stop = signals.stop();
            stop.iter().for_each(|_| forwarding.cancel());
        }
        if news.is_none() && forwarding.is_over() {
            break;
        }
    }
    let (_, outcome) = forwarding.join()?;
    match outcome {
        Ok(()) => Ok(stop.unwrap_or(Exit::Ok)),
        // So each `ssh` ends. A line about it would be on the screen of whoever has just left.
        Err(TransferError::OutputClosed) => {
            output.detail(&TransferError::OutputClosed.to_string());
            Ok(stop.unwrap_or(Exit::Error))
        }
        // What came before a signal. `ssh` ends this process as soon as the connection has.
        Err(error) => Err(Failure::new(Exit::of_transfer(&error), sentence(target, error)).into()),
    }
}

/// Returns the reason why the connection broke. Advice in errors about files is left out.
fn sentence(target: &Target, error: TransferError) -> String {
    match error {
        TransferError::PeerFailed(reason) => reason,
        TransferError::ConnectionLost
        | TransferError::Standstill
        | TransferError::QuotaUsedUp(_)
        | TransferError::SessionForgotten
        | TransferError::PeerInterrupted
        | TransferError::PeerLeft => messages::forward::broke(target, &absence_reason(&error)),
        other => other.to_string(),
    }
}
