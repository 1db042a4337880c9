//! The options of a controller while it is made: what was given, and what could have been.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
#[cfg(feature = "laws")]
use byway_wire::Duration;

/// The given options, and the options that a controller asked for.
#[derive(Debug)]
pub(super) struct OptionReader<'a> {
    given: &'a BTreeMap<String, f64>,
    pub known: Vec<(String, f64)>,
    /// The first invalid option: its name, its value, and the expected values.
    pub wrong: Option<(String, f64, String)>,
}

impl<'a> OptionReader<'a> {
    pub const fn new(given: &'a BTreeMap<String, f64>) -> Self {
        Self { given, known: Vec::new(), wrong: None }
    }

    pub fn number(&mut self, name: &str, value: &mut f64, [least, most]: [f64; 2]) {
        self.known.push((name.to_owned(), *value));
        let Some(given) = self.given.get(name).copied() else { return };
        // Written so that what is no number fails too.
        if given >= least && given <= most {
            *value = given;
        } else if self.wrong.is_none() {
            self.wrong = Some((name.to_owned(), given, format!("a number from {least} to {most}")));
        }
    }

    /// Sets `value` to the option `name`, which is in packets.
    pub fn packets(&mut self, name: &str, value: &mut f64) {
        self.number(name, value, [0.0, 1e8]);
    }

    /// Reads an option that is a share, from 0 to 1.
    pub fn part(&mut self, name: &str, value: &mut f64) {
        self.number(name, value, [0.0, 1.0]);
    }

    /// Sets `value` to the option `name`, which is in milliseconds.
    #[cfg(feature = "laws")]
    pub fn time(&mut self, name: &str, value: &mut Duration) {
        let mut millis = value.as_secs_f64() * 1e3;
        self.number(name, &mut millis, [0.0, 1e6]);
        *value = Duration::from_nanos(libm::round(millis * 1e6) as u64);
    }

    pub fn count(&mut self, name: &str, value: &mut usize, most: f64) {
        let mut number = *value as f64;
        self.number(name, &mut number, [0.0, most]);
        *value = number as usize;
    }

    pub fn small(&mut self, name: &str, value: &mut u32) {
        let mut number = f64::from(*value);
        self.number(name, &mut number, [0.0, 1e6]);
        *value = number as u32;
    }

    /// Reads an option that is 0 or 1.
    pub fn switch(&mut self, name: &str, value: &mut bool) {
        let mut number = f64::from(u8::from(*value));
        self.part(name, &mut number);
        *value = number >= 0.5;
    }
}
