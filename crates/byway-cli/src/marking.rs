//! Which code point a session's packets get.

use byway_transfer::default_dscp;
use byway_wire::Dscp;
use clap::ValueEnum;

/// The values of `--dscp`, and of `dscp` in a gateway's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Marking {
    /// Lower effort (LE, RFC 8622)
    Le,
    /// Best effort, as most traffic
    None,
}

/// Returns the code point of sessions under the controller `congestion`: the requested one, or else
/// the one of the controller's class.
#[must_use]
pub fn dscp(asked: Option<Marking>, congestion: &str) -> Dscp {
    match asked {
        Some(Marking::Le) => Dscp::LowerEffort,
        Some(Marking::None) => Dscp::BestEffort,
        None => default_dscp(congestion),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_control::Class;

    #[test]
    fn background_alone_asks_for_lower_effort_unless_told_otherwise() {
        for name in byway_control::controller_names() {
            let class = Class::Background.default_name();
            let expected = if name == class { Dscp::LowerEffort } else { Dscp::BestEffort };
            assert_eq!(dscp(None, name), expected, "{name}");
            assert_eq!(dscp(Some(Marking::Le), name), Dscp::LowerEffort, "{name}");
            assert_eq!(dscp(Some(Marking::None), name), Dscp::BestEffort, "{name}");
        }
    }
}
