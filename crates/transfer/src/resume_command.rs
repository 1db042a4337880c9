//! The command that goes on where this one was stopped.

use crate::ticket::looks_like_ticket;
use byway_registry::word;
use byway_wire::relay;

/// Whether an argument is or contains a relay word or a registry word.
fn holds_word(argument: &str) -> bool {
    [relay::WORD_PREFIX, word::WORD_PREFIX].iter().any(|prefix| argument.contains(prefix))
}

/// The command line `arguments` of `byway`, quoted for a shell. Without `secrets`, as in a log,
/// `TICKET` and `WORD` replace tickets, relay words and registry words. Without `--new-ticket`,
/// which would make the ticket in use worthless.
#[must_use]
pub fn line(arguments: &[String], secrets: bool) -> String {
    let lasting = arguments.iter().filter(|argument| *argument != "--new-ticket");
    let words = lasting.enumerate().map(|(index, argument)| {
        if index == 0 {
            return "byway".into();
        }
        if !secrets {
            for (is_secret, name) in [(looks_like_ticket(argument), "TICKET"), (holds_word(argument), "WORD")]
            {
                if is_secret {
                    return name.into();
                }
            }
        }
        quoted(argument)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a text for a POSIX shell, if necessary.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:,@%+=".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_and_keeps_its_secrets_from_logs() {
        let arguments = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let typed = arguments(&["/usr/bin/byway", "send", "a b", "it's", "", "byway1-abc", "--json"]);
        assert_eq!(line(&typed, true), "byway send 'a b' 'it'\\''s' '' byway1-abc --json");
        assert_eq!(line(&typed, false), "byway send 'a b' 'it'\\''s' '' TICKET --json");
        let renewed = arguments(&["byway", "recv", "in", "--new-ticket", "--once"]);
        assert_eq!(line(&renewed, true), "byway recv in --once");
        let relay = format!("--relay={}xyz", relay::WORD_PREFIX);
        assert_eq!(line(&arguments(&["byway", "recv", "in", &relay]), false), "byway recv in WORD");
    }
}
