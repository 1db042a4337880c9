//! Values of flags: words that are secrets.

use crate::exit::{Exit, Failure};
use anyhow::{Context, Result};
use byway_transfer::secret::Secret;
use byway_wire::word;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::str::FromStr;

/// A word as given: itself, or `@FILE`, which is read when the word is needed.
pub struct Word<T> {
    source: Source,
    kind: PhantomData<fn() -> T>,
}

#[derive(Clone)]
enum Source {
    Literal(Secret<String>),
    File(PathBuf),
}

impl<T> Clone for Word<T> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), kind: PhantomData }
    }
}

impl<T> fmt::Debug for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Literal(secret) => secret.fmt(f),
            Source::File(path) => write!(f, "@{}", path.display()),
        }
    }
}

impl<T> FromStr for Word<T> {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let source = match text.strip_prefix('@') {
            Some(path) => Source::File(PathBuf::from(path)),
            None => Source::Literal(Secret::new(text.to_owned())),
        };
        Ok(Self { source, kind: PhantomData })
    }
}

impl<T> Word<T>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    /// The value that the word stands for. Fails if its file cannot be read, or with what is wrong with the word.
    pub fn value(&self) -> Result<T> {
        match &self.source {
            Source::Literal(text) => Ok(text.expose().trim().parse()?),
            Source::File(path) => {
                let text = File::open(path).and_then(|file| {
                    let mut text = String::new();
                    file.take(word::MAX_LEN as u64 + 1).read_to_string(&mut text)?;
                    Ok(Secret::new(text))
                });
                let text = text.map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => {
                        let sentence = format!("{} holds no word: it is not text", path.display());
                        anyhow::Error::new(Failure::new(Exit::Usage, sentence))
                    }
                    _ => anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
                })?;
                text.expose().trim().parse::<T>().with_context(|| format!("the word in {}", path.display()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_transfer::identity::{KeyError, PublicKey};
    use std::fs;

    #[test]
    fn a_word_comes_from_the_argument_or_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let key = PublicKey([7; 32]);
        let word = |text: &str| text.parse::<Word<PublicKey>>().unwrap();
        assert_eq!(word(&key.to_string()).value().unwrap(), key);
        let from_file = word(&format!("@{}", file.display()));
        assert_eq!(Exit::of(&from_file.value().unwrap_err()), Exit::NotFound);
        fs::write(&file, format!("{key}\n")).unwrap();
        assert_eq!(from_file.value().unwrap(), key);
        fs::write(&file, "nonsense").unwrap();
        let error = from_file.value().unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&KeyError::NotAKey));
        assert_eq!(Exit::of(&error), Exit::Usage);
        fs::write(&file, [0xff; 4]).unwrap();
        assert_eq!(Exit::of(&from_file.value().unwrap_err()), Exit::Usage);
        assert_eq!(format!("{:?}", word("byway1-secret")), "[redacted]");
    }
}
