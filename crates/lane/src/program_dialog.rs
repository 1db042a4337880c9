//! How a program names its target, on its socket: by SOCKS5 or by HTTP CONNECT, at the same port.

use crate::connect_request::{CONNECTED_REPLY, ConnectAction, ConnectRequest, refusal_answer};
use byway_forward::socks::{self, Socks};
use byway_forward::splice::{IoResult, Local as _};
use byway_forward::stream_request::Refusal;
use byway_forward_host::nonblocking_tcp::Tcp;
use byway_forward_host::socks_dialog::{ProgramRequest, speak as speak_socks};

/// The first byte of SOCKS5. No method of HTTP begins with it.
const SOCKS_VERSION: u8 = 5;
/// The most bytes of a request that are read at once, without removing them from the socket.
const PEEK_LEN: usize = 1 << 10;

/// How far a program is in naming its target.
#[derive(Debug, Default)]
pub(crate) enum ProgramDialog {
    /// It has said nothing.
    #[default]
    Silent,
    Socks(Socks),
    Http(ConnectRequest),
}

/// The language in which a program waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerLanguage {
    Socks,
    Http,
}

impl ProgramDialog {
    /// The language of the program, once it has said anything.
    pub const fn language(&self) -> Option<AnswerLanguage> {
        match self {
            Self::Silent => None,
            Self::Socks(_) => Some(AnswerLanguage::Socks),
            Self::Http(_) => Some(AnswerLanguage::Http),
        }
    }

    /// Hears what a program wants. What follows its request stays in the socket.
    pub fn speak(&mut self, program: &mut Tcp) -> ProgramRequest {
        if matches!(self, Self::Silent) {
            let mut first = [0];
            match program.peek(&mut first) {
                IoResult::Done(1) if first == [SOCKS_VERSION] => *self = Self::Socks(Socks::default()),
                IoResult::Done(1) => *self = Self::Http(ConnectRequest::default()),
                IoResult::Later => return ProgramRequest::Waits,
                IoResult::Done(_) | IoResult::Broken => {
                    program.leave();
                    return ProgramRequest::Over;
                }
            }
        }
        match self {
            Self::Silent => ProgramRequest::Waits,
            Self::Socks(words) => speak_socks(program, words),
            Self::Http(request) => speak_http(program, request),
        }
    }
}

fn speak_http(program: &mut Tcp, request: &mut ConnectRequest) -> ProgramRequest {
    let mut bytes = [0; PEEK_LEN];
    loop {
        let length = match program.peek(&mut bytes) {
            IoResult::Done(0) | IoResult::Broken => {
                program.leave();
                return ProgramRequest::Over;
            }
            IoResult::Done(length) => length,
            IoResult::Later => return ProgramRequest::Waits,
        };
        let (used, action) = request.take(bytes.get(..length).unwrap_or_default());
        if program.read(bytes.get_mut(..used).unwrap_or_default()) != IoResult::Done(used) {
            return ProgramRequest::Over;
        }
        match action {
            ConnectAction::Wait => {}
            ConnectAction::Connect(target) => return ProgramRequest::Asks(target),
            ConnectAction::Close(answer) => {
                let _ = program.write(answer);
                program.leave();
                return ProgramRequest::Over;
            }
        }
    }
}

/// Tells a program what became of its request. A connection that has just begun has room for it;
/// where there is none, there is nobody who reads.
pub(crate) fn answer(program: &mut Tcp, language: AnswerLanguage, outcome: Result<(), Refusal>) {
    let _ = match (language, outcome) {
        (AnswerLanguage::Socks, outcome) => program.write(&socks::reply(outcome)),
        (AnswerLanguage::Http, Ok(())) => program.write(CONNECTED_REPLY),
        (AnswerLanguage::Http, Err(refusal)) => program.write(refusal_answer(refusal)),
    };
}
