//! Decides which sources may connect to a sink.

use crate::source_name::Name;
use byway_control::Class;
use byway_engine::{Admission, Admit, handshake};
use byway_transfer::application_protocol::Protocol;
use byway_transfer::close::CloseCode;
use byway_transfer::identity::PublicKey;
use byway_transfer::{FirstMessage, Secret};
use std::str::FromStr;

/// A name, and the key of the host whose source may use the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedSource {
    /// The name of the source.
    pub name: Name,
    /// The public key of the source's host.
    pub key: PublicKey,
}

impl FromStr for AllowedSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, key) = text.split_once('=').ok_or("write NAME=KEY, with a key that `byway id` prints")?;
        Ok(Self {
            name: name.parse().map_err(|error| format!("{error}"))?,
            key: key.parse().map_err(|error| format!("{error}"))?,
        })
    }
}

/// Whether the operator lets a key use a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameAccess {
    /// The operator allowed this key for the name.
    Listed,
    /// The operator named no keys: the name is that of the key that uses it first.
    FirstCome,
    /// The operator allowed only other keys for the name.
    Refused,
}

/// Returns whether `key` may use `name`, where the operator listed `allow`.
pub fn name_access(allow: &[AllowedSource], name: &Name, key: handshake::PublicKey) -> NameAccess {
    if allow.iter().any(|allowed| allowed.name == *name && allowed.key.0 == key.0) {
        NameAccess::Listed
    } else if allow.is_empty() {
        NameAccess::FirstCome
    } else {
        NameAccess::Refused
    }
}

/// Admits peers that hold the ticket and are sources.
pub struct SourceAccess {
    /// The secret in the ticket, which a source must present.
    pub permission: Secret<[u8; 16]>,
    /// The application protocol that a source must speak.
    pub protocol: Protocol,
    /// For the controllers.
    pub seed: u64,
}

impl Admission for SourceAccess {
    fn admit(&mut self, _: handshake::PublicKey, said: &[u8]) -> Admit {
        let reject =
            |code: CloseCode, reason: &str| Admit::Reject { code: code.number(), reason: reason.into() };
        let permission = match FirstMessage::read(said) {
            Ok(FirstMessage::Application(application)) if application.protocol == self.protocol => {
                application.permission
            }
            Ok(_) => {
                return reject(
                    CloseCode::OtherKind,
                    "this is `byway sink`, which takes what `byway source` sends",
                );
            }
            Err(error) => return reject(CloseCode::Failed, &error.to_string()),
        };
        if permission != self.permission {
            let sentence =
                "the sink does not know this ticket (any more): ask for the one that it prints now";
            return reject(CloseCode::NotAdmitted, sentence);
        }
        self.seed = self.seed.wrapping_add(1);
        Admit::Accept(Class::Normal.controller(self.seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::application_protocol::Application;

    #[test]
    fn a_source_with_the_ticket_comes_in_and_nobody_else() {
        let protocol: Protocol = crate::PROTOCOL_NAME.parse().unwrap();
        let mut gate = SourceAccess { permission: Secret::new([1; 16]), protocol, seed: 0 };
        let said = |permission, protocol: &str| {
            let (permission, protocol) = (Secret::new([permission; 16]), protocol.parse().unwrap());
            Application { permission, protocol }.to_bytes()
        };
        let mut code = |said: &[u8]| match gate.admit(handshake::PublicKey([5; 32]), said) {
            Admit::Accept(_) => 0,
            Admit::Reject { code, .. } => code,
        };
        assert_eq!(code(&said(1, crate::PROTOCOL_NAME)), 0);
        assert_eq!(code(&said(2, crate::PROTOCOL_NAME)), CloseCode::NotAdmitted.number());
        assert_eq!(code(&said(1, "chat/1")), CloseCode::OtherKind.number());
        assert_eq!(code(b"nonsense"), CloseCode::Failed.number());
    }

    #[test]
    fn with_a_list_only_its_names_are_taken_and_only_from_its_keys() {
        let key = |byte| handshake::PublicKey([byte; 32]);
        let (radar7, radar8): (Name, Name) = ("radar7".parse().unwrap(), "radar8".parse().unwrap());
        let allowed: AllowedSource = format!("radar7={}", PublicKey([1; 32])).parse().unwrap();
        assert_eq!(allowed, AllowedSource { name: radar7.clone(), key: PublicKey([1; 32]) });
        assert_eq!(name_access(&[], &radar7, key(2)), NameAccess::FirstCome);
        let second = AllowedSource { name: radar7.clone(), key: PublicKey([2; 32]) };
        let list = [allowed, second];
        for (name, key, access) in [
            (&radar7, key(1), NameAccess::Listed),
            (&radar7, key(2), NameAccess::Listed),
            (&radar7, key(3), NameAccess::Refused),
            (&radar8, key(1), NameAccess::Refused),
        ] {
            assert_eq!(name_access(&list, name, key), access);
        }
        for wrong in ["radar7", "=byway-key-x", "radar7=", "../x=byway-key-x"] {
            assert!(wrong.parse::<AllowedSource>().is_err(), "{wrong}");
        }
    }
}
