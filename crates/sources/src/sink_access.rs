//! Who may connect to a sink.

use byway_control::Class;
use byway_engine::{Admission, Admit, handshake};
use byway_transfer::application_protocol::Protocol;
use byway_transfer::close::CloseCode;
use byway_transfer::{FirstMessage, Secret};

/// Lets in who holds the ticket and is a source.
pub struct SourceAccess {
    /// What the ticket says.
    pub permission: Secret<[u8; 16]>,
    /// What is spoken.
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
        let protocol: Protocol = crate::PROTOCOL.parse().unwrap();
        let mut gate = SourceAccess { permission: Secret::new([1; 16]), protocol, seed: 0 };
        let said = |permission, protocol: &str| {
            let (permission, protocol) = (Secret::new([permission; 16]), protocol.parse().unwrap());
            Application { permission, protocol }.to_bytes()
        };
        let mut code = |said: &[u8]| match gate.admit(handshake::PublicKey([5; 32]), said) {
            Admit::Accept(_) => 0,
            Admit::Reject { code, .. } => code,
        };
        assert_eq!(code(&said(1, crate::PROTOCOL)), 0);
        assert_eq!(code(&said(2, crate::PROTOCOL)), CloseCode::NotAdmitted.number());
        assert_eq!(code(&said(1, "chat/1")), CloseCode::OtherKind.number());
        assert_eq!(code(b"nonsense"), CloseCode::Failed.number());
    }
}
