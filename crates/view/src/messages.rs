//! The texts of the page. `view.js` has the texts around figures.

use byway_transfer::PauseReason;
use serde_json::{Map, Value, json};

pub const NO_ANSWER: &str = "it does not answer: it is stopped, or very busy";
pub const GARBLED_ANSWER: &str = "what it answers makes no sense: it is of another version, or no byway";

/// The text for a browser without a session.
pub const NO_SESSION: &str = "This page is for whoever started it. Open the address that `byway view` printed. It is good for \
                              one visit. For another visit, start `byway view` again.\n";
pub const USED_TOKEN: &str = "This address was used already, or is mistyped. Each is good for one visit. Start `byway view` \
                              again, and open the address that it prints.\n";
pub const READ_ONLY: &str = "This page only shows. It answers GET alone.\n";
pub const NOT_FOUND: &str = "There is no such page here.\n";

/// The program's texts for the reasons why a transfer or a path is held up.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Returns the text of a reason for a transfer.
    pub pause: fn(PauseReason) -> &'static str,
    /// Returns the text of a reason for a path.
    pub pause_of_path: fn(PauseReason) -> &'static str,
}

impl Words {
    /// Returns, for each reason's code, the text for a transfer, the text for a path, and the
    /// meaning.
    pub fn table(&self) -> Value {
        let row = |reason: PauseReason| {
            let words = [(self.pause)(reason), (self.pause_of_path)(reason), meaning(reason)];
            (reason.code().to_owned(), json!(words))
        };
        Value::Object(PauseReason::ALL.into_iter().map(row).collect::<Map<_, _>>())
    }
}

/// Returns the meaning of a reason, and the remedy.
const fn meaning(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::Yielding => {
            "Somebody else uses the line, on this host or another. byway makes room, and fills it as soon as it is idle. \
             With `--priority normal` it takes a share instead."
        }
        PauseReason::SharedBottleneck => {
            "Another path of this transfer leads through the same narrow place, and fills it alone."
        }
        PauseReason::ApplicationLimited => {
            "This host has no more data ready: its disk or program is slower than the paths."
        }
        PauseReason::ReceiverLimited => {
            "The receiver takes no more for now: its disk or program is slower than the paths."
        }
        PauseReason::RelayQuota => "The relay has carried as many bytes as its word allows.",
        PauseReason::BandwidthLimit => "This limit was set here. `byway limit off` lifts it.",
        PauseReason::ReceiverBandwidthLimit => {
            "The receiver has set this limit, and only the receiver can lift it."
        }
        PauseReason::NoAnswer => "Nothing comes back from the other host. byway goes on trying.",
        PauseReason::CannotSense => {
            "byway cannot see whether it is in others' way, because the other host tells no arrival times."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_words() {
        let words = Words { pause: PauseReason::code, pause_of_path: |_| "of a path" };
        let table = words.table();
        assert_eq!(table.as_object().unwrap().len(), PauseReason::ALL.len());
        let row = &table["yielding"];
        assert_eq!((&row[0], &row[1]), (&json!("yielding"), &json!("of a path")));
        assert!(row[2].as_str().unwrap().starts_with("Somebody else uses the line,"));
    }
}
