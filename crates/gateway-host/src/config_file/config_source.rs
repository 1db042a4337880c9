//! A configuration file before its tables are known: its text, and where in it a mistake stands.

use byway_wire::checked_text::MAX_LEN;
use core::ops::Range;
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error as ThisError;
use toml::Spanned;

/// A mistake in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{}:{line}: {what}", file.display())]
pub struct ConfigError {
    /// The file's path.
    pub file: PathBuf,
    /// The line of the mistake, counted from 1.
    pub line: usize,
    /// The mistake, and the expected value.
    pub what: String,
}

/// A value that is parsed from a string.
#[derive(Clone, Copy, Debug)]
pub(super) struct As<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for As<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(As).map_err(|error| D::Error::custom(format!("`{text}`: {error}")))
    }
}

/// A configuration file's path and text, for the line numbers in errors.
pub(super) struct ConfigSource<'a> {
    pub file: &'a Path,
    pub text: &'a str,
}

impl ConfigSource<'_> {
    pub fn at(&self, span: Range<usize>, what: &str) -> ConfigError {
        let line = 1 + self.text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
        ConfigError { file: self.file.to_owned(), line, what: what.to_owned() }
    }

    pub fn whole(&self, what: &str) -> ConfigError {
        self.at(0..0, what)
    }

    /// Parses a relay word or registry word, written as text or as `@FILE`. Errors do not quote it,
    /// because it is a secret.
    pub fn word<T>(&self, directory: &Path, told: &Spanned<String>) -> Result<T, ConfigError>
    where
        T: FromStr<Err: fmt::Display>,
    {
        let word = told.as_ref();
        let Some(file) = word.strip_prefix('@') else {
            return word.trim().parse().map_err(|error: T::Err| self.at(told.span(), &error.to_string()));
        };
        let file = directory.join(file);
        let wrong = |error: &dyn fmt::Display| self.at(told.span(), &format!("{}: {error}", file.display()));
        let mut text = String::new();
        std::fs::File::open(&file)
            .and_then(|open| open.take(MAX_LEN as u64 + 1).read_to_string(&mut text))
            .map_err(|error| wrong(&error))?;
        text.trim().parse().map_err(|error: T::Err| wrong(&error))
    }
}
