//! Asks a person at a terminal.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal as _};

/// Time between two looks at whether the program is being stopped.
const STOP_POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Waits for a line of standard input. `None`: it is not a terminal, or the program is being
/// stopped, according to `is_stopped`.
///
/// # Errors
/// The terminal cannot be read.
pub fn answer_line(is_stopped: impl Fn() -> bool) -> io::Result<Option<String>> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return Ok(None);
    }
    while !is_stopped() {
        let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut waits, Some(&STOP_POLL_INTERVAL)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => {
                let mut line = String::new();
                stdin.read_line(&mut line)?;
                return Ok(Some(line));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
