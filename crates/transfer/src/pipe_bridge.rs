//! Joins two descriptors, as standard input and standard output are, with one end of a pair of
//! sockets. The other end is then a connection as any program's.
//!
//! ```text
//! input  ── thread ──▶ ┌──────┐
//!                      │ pair │ ◀──▶ entry of a forward
//! output ◀── thread ── └──────┘
//! ```
//!
//! Threads wait for the descriptors. These may be files, which no event loop can watch. They may
//! also be shared with processes that must not find them in nonblocking mode.

use crate::error::TransferError;
use byway_forward::forward_target::Target;
use byway_net::Waker;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

/// Bytes moved at once.
const BUFFER_LEN: usize = 64 << 10;

/// One connection that is not a program's, but goes from and to two descriptors of this process.
#[derive(Debug)]
pub struct PipedConnection {
    /// The target of the connection, at the receiver's side.
    pub target: Target,
    /// Bytes for the target are read from here. Its end is the end of this direction alone.
    pub input: OwnedFd,
    /// The output for the target's bytes. It is closed after the last byte.
    pub output: OwnedFd,
}

/// The threads of a [`PipedConnection`]. They end with their descriptors, and may outlive this.
pub(crate) struct PipeBridge {
    news: Receiver<Result<(), TransferError>>,
    is_written: bool,
    /// A second owner of the connection's other end. It keeps the output open when the connection
    /// breaks, so that the reader does not end this process before it reports why.
    _other: UnixStream,
}

impl PipeBridge {
    /// Starts the threads. Returns the connection's other end. `waker` is woken when there is
    /// something to [look](Self::look) at.
    pub fn begin(input: OwnedFd, output: OwnedFd, waker: &Waker) -> io::Result<(UnixStream, Self)> {
        let (own, other) = UnixStream::pair()?;
        let (sender, news) = channel();
        let (to_pair, kept) = (own.try_clone()?, other.try_clone()?);
        let reports = Reports { sender, waker: waker.clone() };
        let failures = reports.clone();
        Builder::new().name("byway input".into()).spawn(move || {
            if let Err(error) = forth(&input, &to_pair) {
                failures.tell(Err(TransferError::Input(error)));
            }
        })?;
        // The report is made before `own` is closed, which the other end notices.
        Builder::new().name("byway output".into()).spawn(move || reports.tell(back(&own, output)))?;
        Ok((other, Self { news, is_written: false, _other: kept }))
    }

    /// Reads the news of the threads.
    ///
    /// # Errors
    /// A descriptor failed, or nobody reads the output any more.
    pub fn look(&mut self) -> Result<(), TransferError> {
        while let Ok(news) = self.news.try_recv() {
            news?;
            self.is_written = true;
        }
        Ok(())
    }

    /// Whether all of the target's bytes are written, and the output is closed.
    pub const fn is_written(&self) -> bool {
        self.is_written
    }
}

#[derive(Clone)]
struct Reports {
    sender: Sender<Result<(), TransferError>>,
    waker: Waker,
}

impl Reports {
    fn tell(&self, news: Result<(), TransferError>) {
        // Without a listener the connection is over.
        let _ = self.sender.send(news);
        self.waker.wake();
    }
}

/// Copies bytes from `input` to the pair of sockets until the end, and then closes that direction.
fn forth(input: &OwnedFd, pair: &UnixStream) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        let length = patiently(input, PollFlags::IN, || rustix::io::read(input, &mut buffer[..]))?;
        let bytes = buffer.get(..length).unwrap_or_default();
        if length == 0 {
            // If the other end is closed, its owner says why.
            let _ = pair.shutdown(std::net::Shutdown::Write);
            return Ok(());
        }
        if write_all(pair, bytes).is_err() {
            return Ok(());
        }
    }
}

/// Copies bytes from the pair of sockets to `output` until the end, and then closes `output`.
fn back(pair: &UnixStream, output: OwnedFd) -> Result<(), TransferError> {
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        wait_for_bytes(pair, &output)?;
        // A reset is an end, too: the owner of the other end says why.
        let length = rustix::io::read(pair, &mut buffer[..]).unwrap_or(0);
        if length == 0 {
            // A socket may have other holders, and would not end by a close. Others are no sockets.
            let _ = rustix::net::shutdown(&output, Shutdown::Write);
            return Ok(());
        }
        write_all(&output, buffer.get(..length).unwrap_or_default()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => TransferError::OutputClosed,
            _ => TransferError::Output(error),
        })?;
    }
}

/// Waits until the pair of sockets has bytes or has ended.
///
/// # Errors
/// The reader of `output` has gone meanwhile.
fn wait_for_bytes(pair: &UnixStream, output: &OwnedFd) -> Result<(), TransferError> {
    loop {
        // Errors and hang-ups are reported without being asked for.
        let mut ends =
            [PollFd::new(pair, PollFlags::IN), PollFd::from_borrowed_fd(output.as_fd(), PollFlags::empty())];
        match poll(&mut ends, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(TransferError::Output(error.into())),
        }
        let [has_bytes, is_gone] = ends.map(|end| !end.revents().is_empty());
        if is_gone {
            return Err(TransferError::OutputClosed);
        }
        if has_bytes {
            return Ok(());
        }
    }
}

fn write_all(to: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let length = patiently(&to, PollFlags::OUT, || rustix::io::write(&to, bytes))?;
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Makes a call, and repeats it if a signal interrupted it. Waits if the descriptor is nonblocking
/// and not ready.
fn patiently(
    descriptor: impl AsFd,
    wanted: PollFlags,
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> io::Result<usize> {
    loop {
        match call() {
            Ok(length) => return Ok(length),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(&descriptor, wanted)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_net::Control;
    use std::io::{Read as _, Write as _, pipe};
    use std::net::Shutdown;
    use std::time::{Duration, Instant};

    /// The longest time that a test waits.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Looks until there is an error, or all is written.
    fn until_over(bridge: &mut PipeBridge) -> Result<(), TransferError> {
        let begun = Instant::now();
        while !bridge.is_written() {
            bridge.look()?;
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[test]
    fn each_direction_ends_for_itself() {
        let control = Control::new().unwrap();
        let ((input, mut to_input), (mut from_output, output)) = (pipe().unwrap(), pipe().unwrap());
        // As left by another process.
        rustix::io::ioctl_fionbio(&input, true).unwrap();
        let (mut far, mut bridge) = PipeBridge::begin(input.into(), output.into(), control.waker()).unwrap();
        to_input.write_all(b"question").unwrap();
        drop(to_input);
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"question");
        assert!(bridge.look().is_ok() && !bridge.is_written());
        far.write_all(b"answer").unwrap();
        far.shutdown(Shutdown::Write).unwrap();
        heard.clear();
        from_output.read_to_end(&mut heard).unwrap();
        assert_eq!(heard, b"answer");
        until_over(&mut bridge).unwrap();
    }

    #[test]
    fn an_output_that_nobody_reads_any_more_is_noticed_without_a_write() {
        let control = Control::new().unwrap();
        let ((input, _to_input), (from_output, output)) = (pipe().unwrap(), pipe().unwrap());
        let (_far, mut bridge) = PipeBridge::begin(input.into(), output.into(), control.waker()).unwrap();
        drop(from_output);
        assert!(matches!(until_over(&mut bridge), Err(TransferError::OutputClosed)));
    }

    #[test]
    fn an_input_that_cannot_be_read_is_told() {
        let control = Control::new().unwrap();
        let directory = std::fs::File::open("/").unwrap();
        let (_from_output, output) = pipe().unwrap();
        let (_far, mut bridge) = PipeBridge::begin(directory.into(), output.into(), control.waker()).unwrap();
        assert!(matches!(until_over(&mut bridge), Err(TransferError::Input(_))));
    }

    #[test]
    fn what_nobody_reads_fills_the_pair_of_sockets_and_nothing_else() {
        let control = Control::new().unwrap();
        let ((input, to_input), (_from_output, output)) = (pipe().unwrap(), pipe().unwrap());
        let (_far, _bridge) = PipeBridge::begin(input.into(), output.into(), control.waker()).unwrap();
        rustix::io::ioctl_fionbio(&to_input, true).unwrap();
        let (mut taken, mut refusals) = (0, 0);
        while refusals < 200 {
            match rustix::io::write(&to_input, &[7; 64 << 10]) {
                Ok(length) => (taken, refusals) = (taken + length, 0),
                Err(_) => {
                    refusals += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        assert!(taken < 4 << 20, "{taken}");
    }
}
