//! The replies of processes on their status sockets, as far as the page shows them. Texts and lists
//! are cut, whatever a process answers. Texts have their invisible characters spelled out.

use byway_transfer::{PauseReason, Printable};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The largest figure that is accepted: more bits per second than any line has, and more
/// milliseconds than a life. Sums of such figures are still finite.
pub const MAX_FIGURE: f64 = 1e15;
/// Letters of the longest text that is shown.
const MAX_TEXT_CHARS: usize = 200;
/// The most transfers of one process that are read.
pub const MAX_TRANSFERS: usize = 128;
/// The most paths of one transfer that are read, in each direction.
pub const MAX_PATHS: usize = 256;
/// The most listening addresses of a process that the page shows.
const MAX_ADDRESSES: usize = 16;

/// A process, as it describes itself.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToldProcess {
    pub verb: Text,
    pub pid: u32,
    pub since: u64,
    pub peer: Option<Text>,
    pub listen: Few<Text, MAX_ADDRESSES>,
    pub transfers: Few<ToldTransfer, MAX_TRANSFERS>,
    pub told: ToldEvents,
}

impl ToldProcess {
    /// Reads a reply. `None`: it is not valid.
    pub fn read(answer: &[u8]) -> Option<Self> {
        // A list could stand for an object without the fields' names.
        let is_object = answer.trim_ascii_start().first() == Some(&b'{');
        serde_json::from_slice(answer).ok().filter(|_| is_object)
    }
}

/// The events beside progress that the page shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToldEvents {
    pub forwarded: Option<ToldForward>,
    pub counters: Option<ToldRelay>,
    pub away: Option<ToldAway>,
}

/// Why nothing is heard of the peer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToldAway {
    pub reason: Option<Text>,
}

/// The counters of a forward.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToldForward {
    pub open: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// The counters of a relay.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToldRelay {
    pub forwarded_bytes: u64,
    pub returned_bytes: u64,
    pub today_bytes: u64,
    pub grants: u64,
}

/// The progress of a transfer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToldTransfer {
    /// The number at a receiver. `None`: this process sends.
    pub transfer: Option<u32>,
    pub from: Option<Text>,
    pub name: Option<Text>,
    #[serde(deserialize_with = "figure_or_zero")]
    pub seconds: f64,
    pub bytes: u64,
    pub total: Option<u64>,
    #[serde(deserialize_with = "figure_or_zero")]
    pub rate_bps: f64,
    #[serde(deserialize_with = "reason")]
    pub pause: Option<PauseReason>,
    #[serde(deserialize_with = "figure")]
    pub yielded_seconds: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub added_delay_ms: Option<f64>,
    pub paths: Few<ToldPath, MAX_PATHS>,
    pub arrivals: Few<ToldPath, MAX_PATHS>,
}

/// How a path is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToldPath {
    pub path: u32,
    pub name: Text,
    pub carrier: Text,
    #[serde(deserialize_with = "lenient")]
    pub local: Option<IpAddr>,
    #[serde(deserialize_with = "lenient")]
    pub remote: Option<SocketAddr>,
    pub state: Text,
    pub bytes: u64,
    #[serde(deserialize_with = "figure_or_zero")]
    pub rate_bps: f64,
    #[serde(deserialize_with = "figure")]
    pub rtt_ms: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub base_rtt_ms: Option<f64>,
    #[serde(deserialize_with = "figure")]
    pub queue_ms: Option<f64>,
    pub packets: Option<u64>,
    pub lost: Option<u64>,
    #[serde(deserialize_with = "reason")]
    pub pause: Option<PauseReason>,
}

/// A text that is short and safe to show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let end = |text: &str| text.char_indices().nth(MAX_TEXT_CHARS).map(|(end, _)| end);
        let kept = end(text).and_then(|end| text.get(..end)).unwrap_or(text);
        // Most texts have nothing to spell out.
        let is_plain = kept.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let mut shown = if is_plain { kept.to_owned() } else { Printable(kept.as_bytes()).to_string() };
        let is_cut = kept.len() < text.len();
        let spelled_end = end(&shown);
        shown.truncate(spelled_end.unwrap_or(usize::MAX));
        if is_cut || spelled_end.is_some() {
            shown.push('…');
        }
        Self(shown)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Letters;
        impl Visitor<'_> for Letters {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Letters)
    }
}

/// The first `N` elements of a list, and how many more there are.
#[derive(Debug)]
pub struct Few<T, const N: usize> {
    pub items: Vec<T>,
    pub more: usize,
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self { items: Vec::new(), more: 0 }
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Few<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const N: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for Elements<T, N> {
            type Value = Few<T, N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Few<T, N>, A::Error> {
                let mut few = Few::default();
                while few.items.len() < N {
                    let Some(item) = list.next_element()? else { return Ok(few) };
                    few.items.push(item);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    few.more += 1;
                }
                Ok(few)
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// Reads a figure. `None`: it is missing, or not possible.
fn figure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let told = Option::<f64>::deserialize(deserializer)?;
    Ok(told.filter(|told| (0.0..=MAX_FIGURE).contains(told)))
}

fn figure_or_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    figure(deserializer).map(Option::unwrap_or_default)
}

/// Reads a reason from its code. `None`: only later versions know it.
fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PauseReason>, D::Error> {
    struct Code(PauseReason);
    impl FromStr for Code {
        type Err = ();
        fn from_str(code: &str) -> Result<Self, ()> {
            PauseReason::of_code(code).map(Self).ok_or(())
        }
    }
    Ok(lenient::<D, Code>(deserializer)?.map(|Code(reason)| reason))
}

/// Reads a value from a text. `None`: it is missing, or of another kind.
fn lenient<'de, D: Deserializer<'de>, T: FromStr>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Written<T>(PhantomData<T>);
    impl<'de, T: FromStr> Visitor<'de> for Written<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or nothing")
        }
        fn visit_unit<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Option<T>, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
            deserializer.deserialize_str(self)
        }
        fn visit_str<E>(self, text: &str) -> Result<Option<T>, E> {
            Ok(text.parse().ok())
        }
    }
    deserializer.deserialize_option(Written(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn lists_and_texts_are_cut_whatever_comes() {
        let paths: Vec<_> =
            (0..1_000).map(|path| json!({ "path": path, "name": "x".repeat(9_999) })).collect();
        let told = json!({ "verb": "send", "transfers": [{ "paths": paths, "bytes": 7 }] });
        let told: ToldProcess = from_value(told).unwrap();
        let paths = &told.transfers.items[0].paths;
        assert_eq!((paths.items.len(), paths.more), (MAX_PATHS, 1_000 - MAX_PATHS));
        assert_eq!(paths.items[9].name.0.chars().count(), MAX_TEXT_CHARS + 1);
    }

    #[test]
    fn what_is_invisible_is_spelled_out_and_what_is_unknown_left_out() {
        let told = json!({
            "verb": "send\u{202e}", "later": {}, "transfers": [{
                "name": "<b>\u{1b}[2J", "pause": "something_new",
                "paths": [{ "local": "nowhere", "remote": "192.0.2.7:4747", "pause": "yielding" }],
            }],
        });
        let told: ToldProcess = from_value(told).unwrap();
        assert_eq!(told.verb.0, "send\\u{202e}");
        let transfer = &told.transfers.items[0];
        assert_eq!((transfer.name.as_ref().unwrap().0.as_str(), transfer.pause), ("<b>\\u{1b}[2J", None));
        let path = &transfer.paths.items[0];
        assert_eq!((path.local, path.remote), (None, Some("192.0.2.7:4747".parse().unwrap())));
        assert_eq!(path.pause, Some(PauseReason::Yielding));
    }

    #[test]
    fn figures_that_cannot_be_are_left_out() {
        for odd in [1.8e307, 1e16, -1.0, f64::MAX] {
            let path = json!({ "rtt_ms": odd, "queue_ms": odd, "base_rtt_ms": 7.5, "rate_bps": odd });
            let transfer = json!({ "seconds": odd, "rate_bps": 8e6, "added_delay_ms": odd, "paths": [path] });
            let told: ToldProcess = from_value(json!({ "transfers": [transfer] })).unwrap();
            let transfer = &told.transfers.items[0];
            assert_eq!((transfer.seconds, transfer.rate_bps, transfer.added_delay_ms), (0.0, 8e6, None));
            let path = &transfer.paths.items[0];
            assert_eq!((path.rtt_ms, path.queue_ms, path.base_rtt_ms), (None, None, Some(7.5)));
            assert_eq!(path.rate_bps, 0.0);
        }
    }

    #[test]
    fn texts_are_cut_as_they_are_spelled() {
        let shown = Text::from("\u{202e}".repeat(9_999).as_str()).0;
        assert_eq!(shown.chars().count(), MAX_TEXT_CHARS + 1);
        assert_eq!(Text::from("plain").0, "plain");
        assert!(Text::from("a\u{7}".repeat(90).as_str()).0.ends_with('…'));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for garbage in
            ["", "[]", "7", "{", r#"{"verb":7}"#, r#"{"transfers":{}}"#, r#"{"pid":-1}"#, "{}x", "\u{0}"]
        {
            assert!(ToldProcess::read(garbage.as_bytes()).is_none(), "{garbage}");
        }
        assert!(ToldProcess::read(b"{\"verb\":\"recv\"}\n").is_some());
    }
}
