//! Taking a lab down.

use crate::lab_directory::Lab;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;

/// Seconds that a keeper may take to end after SIGTERM.
const TERM_TIMEOUT_SECONDS: i64 = 3;
/// Time in seconds that the kernel may take to end all processes of a lab.
const KILL_TIMEOUT_SECONDS: i64 = 10;

/// Ends an emulated network (a lab) with all its processes, if it still runs. Then removes the
/// lab's directory.
///
/// # Errors
/// If the lab does not end, or its directory cannot be removed.
pub fn end(lab: &Lab) -> io::Result<()> {
    if let Some(keeper) = keeper(lab)? {
        for (signal, patience) in [(Signal::TERM, TERM_TIMEOUT_SECONDS), (Signal::KILL, KILL_TIMEOUT_SECONDS)]
        {
            if pidfd_send_signal(&keeper, signal).is_err() || ended(&keeper, patience)? {
                break;
            }
        }
        if !ended(&keeper, 0)? {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "its processes do not end"));
        }
    }
    lab.remove()
}

/// Opens a pidfd of the lab's keeper (the process that runs the lab), if the lab is alive. The
/// keeper holds the lab's lock while it lives. The lock is checked again afterwards, since the
/// kernel may have reused an ended keeper's process number.
fn keeper(lab: &Lab) -> io::Result<Option<OwnedFd>> {
    if !lab.alive() {
        return Ok(None);
    }
    let process = lab.record().map(|record| record.process.cast_signed());
    // A lab that is just coming up, or that ended since: there is nothing to signal.
    let Ok(Some(process)) = process.map(Pid::from_raw) else { return Ok(None) };
    let keeper = pidfd_open(process, PidfdFlags::empty());
    Ok(if lab.alive() { Some(keeper?) } else { None })
}

/// Waits until a process has ended. The end of a namespace's first process ends all others in it.
/// Returns false after `seconds`.
fn ended(process: &OwnedFd, seconds: i64) -> io::Result<bool> {
    let mut watched = [PollFd::new(process, PollFlags::IN)];
    loop {
        match poll(&mut watched, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other? > 0),
        }
    }
}
