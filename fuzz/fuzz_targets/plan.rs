//! Plans of the lab: a text is read or refused at a line that it has, and what is read has
//! variants.
#![no_main]

use byway_lab::plan::{Mode, Overrides, Plan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for mode in [Mode::All, Mode::Quick] {
        match Plan::read("plan.toml", text, mode, &Overrides::default()) {
            Ok(Some(plan)) => assert!(!plan.variants.is_empty()),
            Ok(None) => {}
            Err(error) => assert!(error.line <= 1 + text.lines().count() && !error.what.is_empty()),
        }
    }
});
