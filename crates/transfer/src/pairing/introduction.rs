//! A host's introduction to the other host: its name, its key, and its ticket if it receives.

use super::pairing_error::PairingError;
use crate::identity::PublicKey;
use crate::settings::PeerName;
use crate::ticket::Ticket;
use byway_wire::{Reader, Writer};
use std::str;

/// The version of the letter's form.
const LETTER_VERSION: u8 = 1;
/// Bytes of the longest introduction: a letter less the seal's tag.
const MAX_LEN: usize = byway_wire::relay::LETTER_MAX - 16;

/// A host's description of itself for the other host.
///
/// ```text
/// version (1), length (1), name, key (32), ticket's length (2, 0: none), ticket as text
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The name that the host proposes for itself. `None`: its name is not valid for a peer.
    pub name: Option<PeerName>,
    /// The host's public key.
    pub key: PublicKey,
    /// The host's ticket. `None`: the host receives nothing.
    pub ticket: Option<Ticket>,
}

impl Introduction {
    /// Writes the introduction. An error: the other host would not accept it.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, PairingError> {
        if self.ticket.as_ref().is_some_and(|ticket| ticket.key != self.key) {
            return Err(PairingError::ForeignTicket);
        }
        let name = self.name.as_ref().map(PeerName::as_str).unwrap_or_default();
        let ticket = self.ticket.as_ref().map(Ticket::to_string).unwrap_or_default();
        let mut bytes = vec![0; MAX_LEN];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(LETTER_VERSION);
        writer.u8(name.len() as u8); // at most 64
        writer.bytes(name.as_bytes());
        writer.bytes(&self.key.0);
        writer.u16(u16::try_from(ticket.len()).map_err(|_| PairingError::TooLong)?);
        writer.bytes(ticket.as_bytes());
        if writer.overflowed() {
            return Err(PairingError::TooLong);
        }
        let length = writer.len();
        bytes.truncate(length);
        Ok(bytes)
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, PairingError> {
        let mut reader = Reader::new(bytes);
        let malformed = |part| move |_| PairingError::Malformed(part);
        if reader.u8().map_err(malformed("version"))? != LETTER_VERSION {
            return Err(PairingError::Malformed("version"));
        }
        let mut field = |length, part| {
            let field = reader.bytes(length).map_err(malformed(part))?;
            Ok::<_, PairingError>(field)
        };
        let length = field(1, "name")?.first().copied().unwrap_or_default();
        let name = str::from_utf8(field(usize::from(length), "name")?).unwrap_or_default().parse().ok();
        let key = field(32, "key")?.try_into().map_err(|_| PairingError::Malformed("key"))?;
        let length = field(2, "ticket")?.try_into().map(u16::from_be_bytes).unwrap_or_default();
        let ticket = str::from_utf8(field(usize::from(length), "ticket")?).unwrap_or_default();
        let ticket = match length {
            0 => None,
            _ => Some(ticket.parse::<Ticket>().map_err(|_| PairingError::Malformed("ticket"))?),
        };
        let key = PublicKey(key);
        if !reader.is_empty() || ticket.as_ref().is_some_and(|ticket| ticket.key != key) {
            return Err(PairingError::Malformed("ticket"));
        }
        Ok(Self { name, key, ticket })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use proptest::prelude::*;

    fn ticket(key: PublicKey, addresses: u16) -> Ticket {
        let addresses = (0..addresses).map(|port| ([10, 0, 0, 1], port).into()).collect();
        let permission = Secret::new([3; 16]);
        Ticket { key, permission, addresses, relays: Vec::new(), names: Vec::new() }
    }

    #[test]
    fn an_introduction_is_read_as_it_is_written() {
        let key = PublicKey([7; 32]);
        for name in [None, Some("nas".parse().unwrap())] {
            for ticket in [None, Some(ticket(key, 16))] {
                let introduction = Introduction { name: name.clone(), key, ticket };
                let bytes = introduction.to_bytes().unwrap();
                assert_eq!(Introduction::from_bytes(&bytes).unwrap(), introduction);
                for end in 0..bytes.len() {
                    assert!(Introduction::from_bytes(&bytes[..end]).is_err());
                }
                assert!(Introduction::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
            }
        }
    }

    #[test]
    fn nobody_hands_over_the_ticket_of_another() {
        let (key, other) = (PublicKey([7; 32]), PublicKey([8; 32]));
        let mut introduction = Introduction { name: None, key, ticket: Some(ticket(other, 1)) };
        assert!(matches!(introduction.to_bytes(), Err(PairingError::ForeignTicket)));
        introduction.key = other;
        let mut bytes = introduction.to_bytes().unwrap();
        bytes[2..34].copy_from_slice(&key.0);
        let read = Introduction::from_bytes(&bytes);
        assert!(matches!(read, Err(PairingError::Malformed("ticket"))));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            garbage.insert(0, LETTER_VERSION);
            let _ = Introduction::from_bytes(&garbage);
        }
    }
}
