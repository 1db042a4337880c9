//! Port ranges, as configurations write them.

use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use thiserror::Error;

/// Why a range of ports was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPorts {
    /// The text is not a port or a range of ports.
    #[error("not a port or a range of ports: write 873 or 8000-8010")]
    Ports,
    /// The first port is larger than the last.
    #[error("the first port of a range must not be larger than the last")]
    Reversed,
}

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// The range of all ports.
    pub const ALL: Self = Self { first: 0, last: u16::MAX };

    /// The ports from `first` to `last`. `None`: `last` is below `first`.
    #[must_use]
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first <= last { Some(Self { first, last }) } else { None }
    }

    /// The first port.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }

    /// The last port.
    #[must_use]
    pub const fn last(&self) -> u16 {
        self.last
    }

    /// Whether `port` is in the range.
    #[must_use]
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

impl FromStr for Ports {
    type Err = BadPorts;

    fn from_str(text: &str) -> Result<Self, BadPorts> {
        let port = |text: &str| text.trim().parse().map_err(|_| BadPorts::Ports);
        match text.split_once('-') {
            Some((first, last)) => Self::new(port(first)?, port(last)?).ok_or(BadPorts::Reversed),
            None => port(text).map(|port| Self { first: port, last: port }),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for Ports {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first == self.last {
            serializer.serialize_u16(self.first)
        } else {
            serializer.collect_str(self)
        }
    }
}

struct PortsVisitor;

impl Visitor<'_> for PortsVisitor {
    type Value = Ports;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a port, or a range such as \"8000-8010\"")
    }

    fn visit_u64<E: Error>(self, port: u64) -> Result<Ports, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_i64<E: Error>(self, port: i64) -> Result<Ports, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Ports, E> {
        text.parse().map_err(|error: BadPorts| E::custom(alloc::format!("`{text}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PortsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_wrongly_is_explained() {
        assert_eq!("9-7".parse::<Ports>(), Err(BadPorts::Reversed));
        assert_eq!("70000".parse::<Ports>(), Err(BadPorts::Ports));
        assert_eq!("8000 - 8010".parse::<Ports>().map(|ports| ports.to_string()), Ok("8000-8010".into()));
    }
}
