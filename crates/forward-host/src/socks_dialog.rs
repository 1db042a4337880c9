//! SOCKS5 with a program, on its socket.

use crate::nonblocking_tcp::Tcp;
use byway_forward::forward_target::Target;
use byway_forward::socks::{Socks, SocksAction};
use byway_forward::splice::{IoResult, Local as _};

/// The most bytes of a SOCKS5 message that are read at once, without removing them from the socket.
const PEEK_LEN: usize = 512;

/// The result of reading a program's SOCKS5 request.
pub enum ProgramRequest {
    /// The program has yet to say more.
    Waits,
    /// The program asks for this target.
    Asks(Target),
    /// The program closed the connection, or got its last reply.
    Over,
}

/// Reads a program's SOCKS5 request, and replies. Bytes behind the request stay in the socket.
pub fn speak(tcp: &mut Tcp, words: &mut Socks) -> ProgramRequest {
    let mut bytes = [0; PEEK_LEN];
    loop {
        let length = match tcp.peek(&mut bytes) {
            IoResult::Done(0) | IoResult::Broken => {
                tcp.leave();
                return ProgramRequest::Over;
            }
            IoResult::Done(length) => length,
            IoResult::Later => return ProgramRequest::Waits,
        };
        let (used, next) = words.take(bytes.get(..length).unwrap_or_default());
        if tcp.read(bytes.get_mut(..used).unwrap_or_default()) != IoResult::Done(used) {
            return ProgramRequest::Over;
        }
        match next {
            SocksAction::Wait => {}
            SocksAction::Say(answer) => {
                // A connection that has just begun has room for two bytes.
                if tcp.write(&answer) != IoResult::Done(answer.len()) {
                    return ProgramRequest::Over;
                }
            }
            SocksAction::Connect(target) => return ProgramRequest::Asks(target),
            SocksAction::Close(last) => {
                if !last.is_empty() {
                    let _ = tcp.write(&last);
                }
                tcp.leave();
                return ProgramRequest::Over;
            }
        }
    }
}
