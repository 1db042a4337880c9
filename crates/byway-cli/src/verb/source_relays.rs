//! Relays of a registry for `byway source`. They are asked for at the beginning. A source runs for
//! longer than their words are good, so the words are renewed.

use crate::exit::{Exit, Failure};
use crate::messages;
use crate::output::{Event, Output};
use anyhow::Result;
use byway_registry::message::{Listed, MAX_RELAYS};
use byway_registry::word::RegistryWord;
use byway_transfer::Identity;
use byway_transfer::registry::{FindEvent, FindPlan, RelayDiscovery, ask};
use byway_transfer::state_directory::StateDir;
use byway_wire::relay::Word;

/// A registry that renews the relay words from it.
pub struct RegistryRelays(RelayDiscovery);

impl RegistryRelays {
    /// Asks the registry for relays, or takes its last list. Also returns the relay words of relays
    /// that serve TCP, since a source uses only TCP.
    pub fn find(
        identity: &Identity,
        state: &StateDir,
        word: RegistryWord,
        output: &mut Output,
    ) -> Result<(Self, Vec<Word>)> {
        let plan = FindPlan { first: MAX_RELAYS, ..FindPlan::new(word, Some(state.registries())) };
        let list = match ask(identity, &plan.word)? {
            Ok(list) => list,
            Err(error) => {
                let failure = || Failure::new(Exit::of_registry(&error), error.to_string());
                let last = plan.last_list().ok_or_else(failure)?;
                output.emit(&Event::Warning { message: messages::source::last_list(error) });
                last
            }
        };
        let serves = |listed: Listed| listed.tcp.then_some(listed.word);
        let words: Vec<Word> = list.relays.into_iter().filter_map(serves).collect();
        if words.is_empty() {
            output.emit(&Event::Warning { message: messages::source::NO_RELAY.into() });
        }
        Ok((Self(RelayDiscovery::start(identity, plan)?), words))
    }

    /// Returns relay words that are valid for longer than those before, if any came. To be called a
    /// few times a second.
    pub fn renewed(&self, output: &mut Output) -> Option<Vec<Word>> {
        match self.0.look()? {
            FindEvent::Relays(words) => Some(words),
            FindEvent::Useless(why) => {
                output.emit(&Event::Warning { message: messages::source::no_registry(why) });
                None
            }
        }
    }
}
