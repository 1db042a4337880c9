//! Pairing: two hosts learn each other's keys by a short code that a person reads aloud or types.
//! They meet in a mailbox of a relay ([`byway_wire::relay::MailboxRequest`]).
//!
//! ```text
//!   opener                          relay                            guest
//!   opens a mailbox  ───────────►  mailbox 7
//!   shows 7-crossover-clockwork                                      its person types the code
//!   page 0: SPAKE2 message  ─────►  keeps both  ◄─────  page 0: SPAKE2 message
//!   page 1: sealed introduction ─►  keeps both  ◄─────  page 1: sealed introduction
//! ```
//!
//! The two words are the password of SPAKE2, so who listens learns nothing that helps to guess
//! them. A mailbox has two seats, and each host takes part once: a wrong code ends it. So there is
//! one guess a code, and it hits once in 65,536 times. Who runs the relay has one at each host.
//!
//! | question | place |
//! |---|---|
//! | how a code is written | `code`, `code_words` |
//! | what one host tells the other | `introduction` |
//! | how the password becomes keys, and letters are sealed | `key_agreement` |
//! | what is said when | `conversation` |
//! | how the relay is asked | `relay_visit` |
//! | which name the other host gets | `kept_peer` |
//! | how it may fail | `pairing_error` |

mod code;
mod code_words;
mod conversation;
mod introduction;
mod kept_peer;
mod key_agreement;
mod pairing_error;
mod relay_visit;

pub use code::{PairingCode, PairingCodeError};
pub use introduction::Introduction;
pub use kept_peer::keep_peer;
pub use pairing_error::PairingError;
pub use relay_visit::{PairingNews, PairingPlan, pair};
