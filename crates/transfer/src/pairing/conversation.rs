//! The messages of the two hosts, and their order. The owner of a conversation asks the relay.

use super::code::{CodeWords, PairingCode};
use super::introduction::Introduction;
use super::key_agreement::{KeyAgreement, LetterKeys, PairingSide, SeededRandom};
use super::pairing_error::PairingError;
use crate::identity::PublicKey;
use byway_wire::relay::{MailboxAnswer, MailboxState};

/// The stage of the conversation.
enum Stage {
    /// Page 0: the messages from which both get their keys.
    Greeting(Option<KeyAgreement>),
    /// Page 1: the sealed introductions.
    Introducing(Box<LetterKeys>),
}

/// The next step after a reply of the relay.
#[derive(Debug)]
pub(super) enum Step {
    /// The mailbox is open, and the code is this one.
    Opened(PairingCode),
    /// The other host has not written yet: the request is to be repeated later.
    Wait,
    /// There is another letter to leave.
    GoOn,
    /// The other host introduced itself.
    Paired(Introduction),
}

/// One host's part.
pub(super) struct Conversation {
    side: PairingSide,
    words: CodeWords,
    number: Option<u16>,
    stage: Stage,
    /// This host's letter for the present page of the mailbox.
    letter: Vec<u8>,
    introduction: Vec<u8>,
    /// This host's own key. The other host must have a different one.
    key: PublicKey,
}

impl Conversation {
    /// Begins a conversation. `code`: the code that the person typed. `None`: a new code is made.
    pub(super) fn new(
        code: Option<PairingCode>,
        introduction: &Introduction,
        random: &mut SeededRandom,
    ) -> Result<Self, PairingError> {
        let key = introduction.key;
        let introduction = introduction.to_bytes()?;
        let (side, words) = match code {
            Some(code) => (PairingSide::Guest, code.words()),
            None => (PairingSide::Opener, CodeWords::new(random.array())),
        };
        let (agreement, letter) = KeyAgreement::new(side, words, random);
        let number = code.map(|code| code.number);
        Ok(Self { side, words, number, stage: Stage::Greeting(Some(agreement)), letter, introduction, key })
    }

    /// The mailbox and the page to ask for, and the letter to leave there.
    pub(super) fn request(&self) -> (Option<u16>, u8, &[u8]) {
        let page = match self.stage {
            Stage::Greeting(_) => 0,
            Stage::Introducing(_) => 1,
        };
        (self.number, page, &self.letter)
    }

    /// Whether a letter of the other host has arrived.
    pub(super) const fn is_met(&self) -> bool {
        matches!(self.stage, Stage::Introducing(_))
    }

    /// Handles the relay's reply to the last request.
    pub(super) fn on_answer(&mut self, answer: &MailboxAnswer<'_>) -> Result<Step, PairingError> {
        let code = self.words.with_number(answer.number);
        match (answer.state, self.side) {
            (MailboxState::Seated, _) => {}
            (MailboxState::Missing, PairingSide::Opener) => return Err(PairingError::Over),
            (MailboxState::Missing, PairingSide::Guest) => return Err(PairingError::NoHost(code)),
            (MailboxState::Taken, _) => return Err(PairingError::Taken(code)),
            (MailboxState::Full, _) => return Err(PairingError::Full),
        }
        if self.number.is_none() {
            self.number = Some(answer.number);
            return Ok(Step::Opened(code));
        }
        if answer.letter.is_empty() {
            return Ok(Step::Wait);
        }
        match &mut self.stage {
            Stage::Greeting(agreement) => {
                let keys = agreement.take().and_then(|agreement| agreement.finish(answer.letter));
                let keys = keys.ok_or(PairingError::Stranger)?;
                self.letter = keys.seal(&self.introduction).ok_or(PairingError::TooLong)?;
                self.stage = Stage::Introducing(Box::new(keys));
                Ok(Step::GoOn)
            }
            Stage::Introducing(keys) => {
                let letter = keys.open(answer.letter).ok_or(PairingError::WrongCode)?;
                let told = Introduction::from_bytes(&letter)?;
                if told.key == self.key { Err(PairingError::Oneself) } else { Ok(Step::Paired(told)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::ticket::Ticket;
    use proptest::prelude::*;

    /// A mailbox with two seats, which answers as a relay does.
    #[derive(Default)]
    struct Mailbox([[Vec<u8>; 2]; 2]);

    impl Mailbox {
        fn visit(&mut self, host: &mut Conversation) -> Result<Step, PairingError> {
            let seat = usize::from(host.side == PairingSide::Guest);
            let (_, page, letter) = host.request();
            let page = usize::from(page);
            if self.0[seat][page].is_empty() {
                self.0[seat][page] = letter.to_vec();
            }
            let letter = self.0[1 - seat][page].clone();
            answer(host, MailboxState::Seated, &letter)
        }
    }

    fn answer(host: &mut Conversation, state: MailboxState, letter: &[u8]) -> Result<Step, PairingError> {
        host.on_answer(&MailboxAnswer { nonce: [0; 8], number: 7, state, letter })
    }

    fn introduction(key: u8, receives: bool) -> Introduction {
        let key = PublicKey([key; 32]);
        let permission = Secret::new([3; 16]);
        let ticket = Ticket { key, permission, addresses: Vec::new(), relays: Vec::new(), names: Vec::new() };
        Introduction { name: "nas".parse().ok(), key, ticket: receives.then_some(ticket) }
    }

    fn host(code: Option<PairingCode>, seed: u8) -> Conversation {
        let introduction = introduction(seed, code.is_none());
        Conversation::new(code, &introduction, &mut SeededRandom::new(&[seed; 32])).unwrap()
    }

    fn opener(mailbox: &mut Mailbox) -> (Conversation, PairingCode) {
        let mut opener = host(None, 1);
        match mailbox.visit(&mut opener) {
            Ok(Step::Opened(code)) => (opener, code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_learn_the_other() {
        let mut mailbox = Mailbox::default();
        let (mut opener, code) = opener(&mut mailbox);
        let mut guest = host(Some(code), 2);
        assert!(matches!(mailbox.visit(&mut opener), Ok(Step::Wait)) && !opener.is_met());
        assert!(matches!(mailbox.visit(&mut guest), Ok(Step::GoOn)) && guest.is_met());
        assert!(matches!(mailbox.visit(&mut guest), Ok(Step::Wait)));
        assert!(matches!(mailbox.visit(&mut opener), Ok(Step::GoOn)));
        assert!(
            matches!(mailbox.visit(&mut opener), Ok(Step::Paired(told)) if told == introduction(2, false))
        );
        assert!(matches!(mailbox.visit(&mut guest), Ok(Step::Paired(told)) if told == introduction(1, true)));
    }

    #[test]
    fn a_wrong_guess_ends_the_code_for_both() {
        let mut mailbox = Mailbox::default();
        let (mut opener, code) = opener(&mut mailbox);
        let wrong = match code.to_string().as_str() {
            "7-acorn-acorn" => "7-acorn-airport",
            _ => "7-acorn-acorn",
        };
        let mut guest = host(wrong.parse().ok(), 2);
        for host in [&mut guest, &mut opener] {
            assert!(matches!(mailbox.visit(host), Ok(Step::GoOn)));
        }
        assert!(matches!(mailbox.visit(&mut guest), Ok(Step::Wait)));
        for host in [&mut opener, &mut guest] {
            assert!(matches!(mailbox.visit(host), Err(PairingError::WrongCode)));
        }
    }

    #[test]
    fn nobody_pairs_with_himself() {
        let mut mailbox = Mailbox::default();
        let (mut opener, code) = opener(&mut mailbox);
        let itself = Introduction { ticket: None, ..introduction(1, false) };
        let mut guest = Conversation::new(Some(code), &itself, &mut SeededRandom::new(&[2; 32])).unwrap();
        for host in [&mut guest, &mut opener] {
            assert!(matches!(mailbox.visit(host), Ok(Step::GoOn)));
        }
        assert!(matches!(mailbox.visit(&mut guest), Ok(Step::Wait)));
        for host in [&mut opener, &mut guest] {
            assert!(matches!(mailbox.visit(host), Err(PairingError::Oneself)));
        }
    }

    #[test]
    fn a_first_message_that_is_none_says_nothing_of_the_code() {
        for message in [&b"x"[..], &[0; 33]] {
            let (mut opener, _) = opener(&mut Mailbox::default());
            assert!(matches!(
                answer(&mut opener, MailboxState::Seated, message),
                Err(PairingError::Stranger)
            ));
        }
    }

    #[test]
    fn what_a_relay_refuses_is_told_with_the_code() {
        let code: PairingCode = "7-crossover-clockwork".parse().unwrap();
        let mut guest = host(Some(code), 2);
        let told = |host: &mut Conversation, state| answer(host, state, &[]).unwrap_err().to_string();
        assert!(told(&mut guest, MailboxState::Missing).contains("7-crossover-clockwork"));
        assert!(told(&mut guest, MailboxState::Taken).contains("7-crossover-clockwork"));
        let (mut opener, _) = opener(&mut Mailbox::default());
        assert!(matches!(answer(&mut opener, MailboxState::Missing, &[]), Err(PairingError::Over)));
        assert!(matches!(answer(&mut opener, MailboxState::Full, &[]), Err(PairingError::Full)));
    }

    proptest! {
        /// Asserts that no letters of a relay, or of anybody without the code, complete a pairing.
        #[test]
        fn no_stranger_is_ever_the_other_host(letters in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..6), echoes: bool) {
            let (mut opener, code) = opener(&mut Mailbox::default());
            let mut guest = host(Some(code), 2);
            for host in [&mut opener, &mut guest] {
                for letter in &letters {
                    let own = host.request().2.to_vec();
                    match answer(host, MailboxState::Seated, if echoes { &own } else { letter }) {
                        Ok(Step::Paired(_) | Step::Opened(_)) => prop_assert!(false),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
            }
        }
    }
}
