//! Code points of differentiated services.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A differentiated services code point, 0 to 63. The names of RFC 2474, RFC 2597, RFC 3246 and RFC
/// 8622 are known too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "DscpText", into = "u8")]
pub struct Dscp(u8);

/// How a code point may be written.
#[derive(Deserialize)]
#[serde(untagged)]
enum DscpText {
    Number(u8),
    Name(String),
}

impl Dscp {
    /// The code point with this number. `None`: the number is above 63.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number < 64 { Some(Self(number)) } else { None }
    }

    /// The number of the code point.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    fn by_name(name: &str) -> Option<Self> {
        let digits = |prefix: &str| name.strip_prefix(prefix).map(str::as_bytes);
        match name {
            "be" | "df" | "default" => return Some(Self(0)),
            "le" => return Some(Self(1)),
            "ef" => return Some(Self(46)),
            _ => {}
        }
        if let Some(&[class @ b'0'..=b'7']) = digits("cs") {
            return Some(Self((class - b'0') * 8));
        }
        match digits("af") {
            Some(&[class @ b'1'..=b'4', drop @ b'1'..=b'3']) => {
                Some(Self((class - b'0') * 8 + (drop - b'0') * 2))
            }
            _ => None,
        }
    }
}

impl TryFrom<DscpText> for Dscp {
    type Error = &'static str;

    fn try_from(text: DscpText) -> Result<Self, Self::Error> {
        match text {
            DscpText::Number(number) => Self::new(number),
            DscpText::Name(name) => Self::by_name(&name),
        }
        .ok_or("not a DSCP: write 0 to 63, or a name such as cs1, af11, le, ef")
    }
}

impl From<Dscp> for u8 {
    fn from(dscp: Dscp) -> Self {
        dscp.0
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
