//! Values of flags: words that are secrets.

use crate::exit::{Exit, Failure};
use anyhow::{Context, Result};
use byway_transfer::secret::Secret;
use byway_wire::word;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Words that a file may hold, and an option be given in all.
pub const MOST: usize = 1_000;

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
                let text = read(path, word::MAX_LEN)?;
                text.expose().trim().parse::<T>().with_context(|| format!("the word in {}", path.display()))
            }
        }
    }

    /// The values that it stands for: a file may hold one word a line. Empty lines and those that begin with `#` say nothing.
    fn values(&self) -> Result<Vec<T>> {
        let Source::File(path) = &self.source else { return Ok(vec![self.value()?]) };
        let text = read(path, MOST * (word::MAX_LEN + 2))?;
        let lines = (1..).zip(text.expose().lines().map(str::trim));
        let words = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let parse = |(number, line): (usize, &str)| {
            line.parse::<T>().with_context(|| format!("line {number} of {}", path.display()))
        };
        let values: Vec<T> = words.map(parse).collect::<Result<_>>()?;
        if values.is_empty() {
            let sentence = format!("{} holds no word", path.display());
            return Err(Failure::new(Exit::Usage, sentence).into());
        }
        Ok(values)
    }
}

/// The values of an option that may be given several times, or with files of several words.
///
/// # Errors
/// A word is none, a file cannot be read, or there are more than [`MOST`].
pub fn values<T>(words: &[Word<T>], option: &'static str) -> Result<Vec<T>>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let mut all = Vec::new();
    for word in words {
        all.extend(word.values().context(option)?);
    }
    if all.len() > MOST {
        let sentence = format!("{option}: {} words, and {MOST} are the most", all.len());
        return Err(Failure::new(Exit::Usage, sentence).into());
    }
    Ok(all)
}

/// What a file says, or its beginning.
fn read(path: &Path, most: usize) -> Result<Secret<String>> {
    let text = File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(most as u64 + 1).read_to_string(&mut text)?;
        Ok(Secret::new(text))
    });
    text.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            let sentence = format!("{} holds no word: it is not text", path.display());
            Failure::new(Exit::Usage, sentence).into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot read {}", path.display())),
    })
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
        fs::write(&file, format!("# ours\n{key}\n\n {key} \r\n")).unwrap();
        assert_eq!(values(&[from_file.clone(), word(&key.to_string())], "--to").unwrap(), [key; 3]);
        fs::write(&file, format!("{key}\nnonsense\n")).unwrap();
        let error = values(std::slice::from_ref(&from_file), "--to").unwrap_err();
        assert!(format!("{error:#}").starts_with("--to: line 2 of "), "{error:#}");
        fs::write(&file, format!("{key}\n").repeat(MOST)).unwrap();
        assert_eq!(values(std::slice::from_ref(&from_file), "--to").unwrap().len(), MOST);
        let error = values(&[from_file.clone(), from_file.clone()], "--to").unwrap_err();
        assert_eq!(error.to_string(), "--to: 2000 words, and 1000 are the most");
        fs::write(&file, "# nothing\n").unwrap();
        assert_eq!(Exit::of(&values(std::slice::from_ref(&from_file), "--to").unwrap_err()), Exit::Usage);
        fs::write(&file, [0xff; 4]).unwrap();
        assert_eq!(Exit::of(&from_file.value().unwrap_err()), Exit::Usage);
        assert_eq!(format!("{:?}", word("byway1-secret")), "[redacted]");
    }
}
