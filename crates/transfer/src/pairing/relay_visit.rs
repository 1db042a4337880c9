//! Sends a pairing's requests to a relay, over UDP.

use super::code::PairingCode;
use super::conversation::{Conversation, Step};
use super::introduction::Introduction;
use super::key_agreement::SeededRandom;
use super::pairing_error::PairingError;
use byway_wire::Writer;
use byway_wire::relay::{
    GREET_LEN, Greet, Greeted, MAILBOX_LEN, MAILED_MAX, MailboxAnswer, MailboxKey, Notice, Word,
};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Time to wait for the relay's reply before the request is repeated.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(700);
/// Requests without an answer after which the relay is silent.
const MAX_TRIES: usize = 6;
/// Time that a relay which answered before may be silent, since a host may change its network
/// meanwhile.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest validity of a code, whatever the relay replies. It is a little longer than at the
/// relay.
const CODE_LIFETIME: Duration = Duration::from_secs(605);
/// Time between two requests for the other host's letter.
const ASK_INTERVAL: Duration = Duration::from_millis(1_000);
/// Time between two checks whether to stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time for the other host's introduction after its first letter.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of a pairing.
#[derive(Debug)]
pub struct PairingPlan {
    /// Addresses of one relay.
    pub relay: Vec<SocketAddr>,
    /// The relay word of that relay. A host at which a code was typed needs none.
    pub word: Option<Word>,
    /// The code from the other host. `None`: this host makes a code.
    pub code: Option<PairingCode>,
    /// The introduction to send to the other host.
    pub introduction: Introduction,
    /// Entropy: the code and all keys follow from it.
    pub seed: [u8; 32],
}

/// An event to show to a person during a pairing.
#[derive(Clone, Copy, Debug)]
pub enum PairingNews {
    /// The code for the other host, and the address of the relay.
    Code(PairingCode, SocketAddr),
    /// Nothing: say whether to go on.
    Waiting,
}

/// Pairs this host with another. `go_on` gets the events, and returns whether to go on. Blocks for
/// ten minutes at most.
///
/// # Errors
/// The hosts do not know each other now.
pub fn pair(
    plan: &PairingPlan,
    mut go_on: impl FnMut(PairingNews) -> bool,
) -> Result<Introduction, PairingError> {
    let mut random = SeededRandom::new(&plan.seed);
    let mut conversation = Conversation::new(plan.code, &plan.introduction, &mut random)?;
    let key = MailboxKey::new(plan.word.as_ref(), random.array());
    let mut visit = RelayVisit::open(&plan.relay, key, random, &mut go_on)?;
    let (begun, mut met_at) = (Instant::now(), None);
    loop {
        let answer = visit.ask(conversation.request(), &mut go_on)?;
        match conversation.on_answer(&answer)? {
            Step::Opened(code) if !go_on(PairingNews::Code(code, visit.relay)) => {
                return Err(PairingError::Stopped);
            }
            Step::Opened(_) | Step::GoOn => {}
            Step::Wait => pause(ASK_INTERVAL, &mut go_on)?,
            Step::Paired(introduction) => return Ok(introduction),
        }
        if conversation.is_met() && met_at.get_or_insert_with(Instant::now).elapsed() > INTRODUCTION_TIMEOUT {
            return Err(PairingError::Gone);
        }
        if begun.elapsed() > CODE_LIFETIME {
            return Err(PairingError::Over);
        }
    }
}

/// A relay that answered, and this host's cookie there.
struct RelayVisit {
    socket: UdpSocket,
    relay: SocketAddr,
    key: MailboxKey,
    cookie: u64,
    random: SeededRandom,
    packet: [u8; MAILED_MAX],
}

impl RelayVisit {
    /// Takes the first of the addresses that answers.
    fn open(
        addresses: &[SocketAddr],
        key: MailboxKey,
        mut random: SeededRandom,
        go_on: &mut impl FnMut(PairingNews) -> bool,
    ) -> Result<Self, PairingError> {
        let mut failed = None;
        for relay in addresses.iter().copied() {
            let socket = match connected(relay) {
                Ok(socket) => socket,
                Err(error) => {
                    failed = Some(error.into());
                    continue;
                }
            };
            match greet(&socket, key.grant_id(), &mut random, go_on) {
                Ok(cookie) => {
                    return Ok(Self { socket, relay, key, cookie, random, packet: [0; MAILED_MAX] });
                }
                Err(PairingError::Stopped) => return Err(PairingError::Stopped),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| PairingError::Silent(addresses.to_vec())))
    }

    /// The relay's answer to a request about this page of this mailbox.
    fn ask(
        &mut self,
        (number, page, letter): (Option<u16>, u8, &[u8]),
        go_on: &mut impl FnMut(PairingNews) -> bool,
    ) -> Result<MailboxAnswer<'_>, PairingError> {
        let (begun, mut refusal) = (Instant::now(), None);
        while begun.elapsed() < SILENCE_TIMEOUT {
            let (nonce, mut request) = (self.random.array(), [0; MAILBOX_LEN]);
            self.key.write(&mut request, nonce, (number, page), letter, self.cookie);
            let key = &self.key;
            let Some(length) = exchange(&self.socket, &request, &mut self.packet, go_on, |packet| {
                // Whoever saw the nonce could have written an answer without the MAC.
                (MailboxAnswer::answers(packet, nonce) && key.read(packet).is_ok())
                    || Notice::read(packet).is_ok_and(|notice| notice.echo == nonce)
            })?
            else {
                // A connected socket keeps the address that this host had, and may have no more.
                if let Ok(socket) = connected(self.relay) {
                    self.socket = socket;
                }
                refusal = None;
                continue;
            };
            let Ok(notice) = Notice::read(self.packet.get(..length).unwrap_or_default()) else {
                return self.read(length);
            };
            if notice.is_authentic(self.key.mac_key()) {
                return Err(PairingError::Refused(notice.reason));
            }
            if refusal.replace(notice.reason).is_some() {
                break;
            }
            // This host's address may have changed, and the cookie with it.
            match greet(&self.socket, self.key.grant_id(), &mut self.random, go_on) {
                Ok(cookie) => self.cookie = cookie,
                Err(PairingError::Silent(_)) => refusal = None,
                Err(error) => return Err(error),
            }
        }
        Err(match refusal {
            Some(reason) => PairingError::Refused(reason),
            None => PairingError::Silent(vec![self.relay]),
        })
    }

    fn read(&self, length: usize) -> Result<MailboxAnswer<'_>, PairingError> {
        let packet = self.packet.get(..length).unwrap_or_default();
        self.key.read(packet).map_err(|_| PairingError::RelayMalformed)
    }
}

fn connected(relay: SocketAddr) -> io::Result<UdpSocket> {
    let any = match relay {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(relay)?;
    socket.set_read_timeout(Some(STOP_POLL_INTERVAL))?;
    Ok(socket)
}

/// This host's cookie at the relay.
fn greet(
    socket: &UdpSocket,
    grant: u32,
    random: &mut SeededRandom,
    go_on: &mut impl FnMut(PairingNews) -> bool,
) -> Result<u64, PairingError> {
    for _ in 0..MAX_TRIES {
        let (nonce, mut request, mut answer) = (random.array(), [0; GREET_LEN], [0; MAILED_MAX]);
        Greet { nonce, grant }.write(&mut Writer::new(&mut request));
        let mut told = None;
        exchange(socket, &request, &mut answer, go_on, |packet| {
            let greeted = Greeted::read(packet).ok().filter(|greeted| greeted.nonce == nonce);
            let notice = Notice::read(packet).ok().filter(|notice| notice.echo == nonce);
            told = greeted.map(|it| Ok(it.cookie)).or_else(|| notice.map(|it| Err(it.reason)));
            told.is_some()
        })?;
        if let Some(told) = told {
            return told.map_err(PairingError::Refused);
        }
    }
    Err(PairingError::Silent(socket.peer_addr().into_iter().collect()))
}

/// Sends a request, and waits for the packet that answers it. Returns the packet's length.
fn exchange(
    socket: &UdpSocket,
    request: &[u8],
    packet: &mut [u8],
    go_on: &mut impl FnMut(PairingNews) -> bool,
    mut answers: impl FnMut(&[u8]) -> bool,
) -> Result<Option<usize>, PairingError> {
    // A packet that cannot be sent is as good as lost.
    let _ = socket.send(request);
    let begun = Instant::now();
    while begun.elapsed() < ANSWER_TIMEOUT {
        match socket.recv(packet) {
            Ok(length) if answers(packet.get(..length).unwrap_or_default()) => return Ok(Some(length)),
            Ok(_) => {}
            // Also where the relay's host says that nobody listens: it may begin to.
            Err(error) => {
                if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
                    std::thread::sleep(STOP_POLL_INTERVAL);
                }
                if !go_on(PairingNews::Waiting) {
                    return Err(PairingError::Stopped);
                }
            }
        }
    }
    Ok(None)
}

fn pause(time: Duration, go_on: &mut impl FnMut(PairingNews) -> bool) -> Result<(), PairingError> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::sleep(STOP_POLL_INTERVAL);
        if !go_on(PairingNews::Waiting) {
            return Err(PairingError::Stopped);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PublicKey;
    use byway_wire::relay::{MacKey, MailboxRequest, MailboxState, Reason, RelayKey};
    use std::thread;

    /// A relay that has no mailbox, and hears nothing more of the first host that greeted it. It
    /// ends with its first answer about a mailbox, and returns how often it was greeted.
    fn relay(socket: &UdpSocket) -> usize {
        let (key, mac_key) = (RelayKey::new(&[1; 32]), MacKey::of_strangers());
        let (mut greeted, mut bytes) = (Vec::new(), [0; 2_000]);
        loop {
            let (length, from) = socket.recv_from(&mut bytes).unwrap();
            let (packet, cookie) = (&bytes[..length], key.cookie(0, from, 0));
            let mut answer = [0; MAILED_MAX];
            let mut writer = Writer::new(&mut answer);
            if let Ok(Greet { nonce, grant }) = Greet::read(packet) {
                greeted.push(from);
                let consent = key.consent(grant, from, 0);
                Greeted { nonce, address: from, consent, cookie, unix_millis: 0 }.write(&mut writer);
            } else if let Ok(request) = MailboxRequest::read(packet)
                && greeted.first() != Some(&from)
            {
                let MailboxRequest { nonce, number, .. } = request;
                if request.is_authentic(packet, &mac_key, cookie) {
                    let number = number.unwrap();
                    let (state, letter) = (MailboxState::Missing, &[][..]);
                    let length = MailboxAnswer { nonce, number, state, letter }.write(&mut answer, &mac_key);
                    socket.send_to(&answer[..length], from).unwrap();
                    return greeted.len();
                }
                Notice::new(Reason::UnknownWord, 0, nonce, 0, 0, None).write(&mut writer);
            }
            let length = writer.len();
            socket.send_to(&answer[..length], from).unwrap();
        }
    }

    #[test]
    fn a_host_with_another_address_asks_on() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let plan = PairingPlan {
            relay: vec![socket.local_addr().unwrap()],
            word: None,
            code: "7-crossover-clockwork".parse().ok(),
            introduction: Introduction { name: None, key: PublicKey([7; 32]), ticket: None },
            seed: [3; 32],
        };
        let relay = thread::spawn(move || relay(&socket));
        assert!(matches!(pair(&plan, |_| true), Err(PairingError::NoHost(_))));
        assert!(relay.join().unwrap() >= 2);
    }
}
