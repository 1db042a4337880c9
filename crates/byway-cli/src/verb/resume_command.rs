//! The command that goes on where this process stops.

use std::io::{self, IsTerminal as _};

/// Returns the command line of this process, to be shown. Without a terminal, secrets are left out,
/// as the reader may be a log.
pub(super) fn command() -> String {
    let arguments: Vec<_> =
        std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    byway_transfer::resume_command::line(&arguments, io::stderr().is_terminal())
}
