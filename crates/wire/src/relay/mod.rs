//! The packets of the relay protocol, in network byte order. A relay keeps no state per flow,
//! because each packet carries its authorisation. A relay enlarges no packet, and sends only to
//! addresses that consented or from which packets came.
//!
//! | party | part |
//! |---|---|
//! | operator | gives a sender a relay word ([`Word`]): a [`Grant`] of rights and a secret |
//! | [registry](RangeKey) | may make relay words, too, with a key from the relay |
//! | receiver | asks the relay ([`Greet`]) for a [`Consent`], and passes it to the sender |
//! | two hosts | leave sealed letters for each other at the relay ([`MailboxRequest`]) |
//! | relay | remembers where it heard a receiver, and tells the sender ([`Location`]) |
//! | sender | puts an envelope ([`Hop`]) before each packet: grant, destination, consent, MAC |
//! | relay | replaces the envelope by the sender's address and a [`ReturnTag`] ([`Delivered`]) |
//! | receiver | answers through the relay with the return tag ([`ReturnHop`], [`ReturnedPacket`]) |
//!
//! | first byte | packet | from → to | bytes before the inner packet (IPv4, IPv6) |
//! |---|---|---|---|
//! | 60 + bits | [`Forward`]: bit 0 IPv6 destination, bit 1 caveat | sender → relay | 37, 49; with caveat 44, 56 |
//! | 64, 65 | [`Delivered`]: bit 0 IPv6 sender | relay → receiver | as it came in |
//! | 66, 67 | [`Return`]: bit 0 IPv6 sender | receiver → relay | 22, 34 |
//! | 68, 69 | [`ReturnedPacket`]: bit 0 IPv6 receiver | relay → sender | as it came in |
//! | 6a | [`Greet`], perhaps with a [`LocationRequest`] | anyone → relay | 56 in all |
//! | 6b | [`Opening`] | host → peer | 9 in all |
//! | 6c, 6d | [`Greeted`]: bit 0 IPv6 greeter | relay → greeter | 41, 53 in all |
//! | 6e | [`Notice`] | relay → sender | 30 in all |
//! | 6f | [`Location`] | relay → who asked | 44, 56 in all |
//! | 70, 71 | [`heartbeat`](crate::heartbeat) | relay, registry | |
//! | 72 | [`MailboxRequest`] | host → relay | 1147 in all |
//! | 73 | [`MailboxAnswer`] | relay → host | 22 to 1122 in all |

mod clock;
mod deliver;
mod envelope;
mod grant;
mod greet;
mod key;
mod location;
mod mailbox;
mod message;
mod minted;
mod notice;
mod opening;
mod secret;
mod word;

pub use clock::RelayClock;
pub use deliver::{Delivered, RETURN_MAX, RETURN_V4, RETURN_V6, Return, ReturnHop, ReturnedPacket};
pub use envelope::{
    ENVELOPE_MAX, ENVELOPE_V4, ENVELOPE_V4_NARROWED, ENVELOPE_V6, ENVELOPE_V6_NARROWED, Forward, Hop,
    NoticeTrust, TIME_WINDOW,
};
pub use grant::{
    CAVEAT_LEN, Caveat, GRANT_EPOCH_SECONDS, GRANT_LEN, Grant, Minute, QuotaClass, RateClass, Scope, Terms,
};
pub use greet::{CONSENT_LEN, CONSENT_LIFE, GREET_LEN, GREETED_MAX, Greet, Greeted};
pub use key::{Consent, EXPIRY_UNIT, RelayKey, ReturnTag, restore};
pub use location::{LOCATION_MAX, Location, LocationAction, LocationKey, LocationRequest, ReceiverTag};
pub use mailbox::{
    LETTER_MAX, MAILBOX_LEN, MAILBOX_TYPE, MAILED_MAX, MailboxAnswer, MailboxKey, MailboxRequest,
    MailboxState, PAGE_COUNT,
};
pub use message::{MessageType, canonical};
pub use minted::{EpochKey, GrantId, Minted, RANGE_COUNT, RangeKey, SERIAL_COUNT};
pub use notice::{NOTICE_LEN, Notice, Reason};
pub use opening::{OPENING_LEN, Opening};
pub use secret::{GrantSecret, MacKey};
pub use word::{MAX_ADDRESSES, RelayWordError, WORD_PREFIX, Word};
