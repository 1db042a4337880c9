//! Words that are secrets, as a person gives them: each itself, or the name of a file that holds
//! it.

use crate::secret::Secret;
use byway_wire::checked_text;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error as ThisError;

/// The most words in a file, and the most of an option in all.
pub const MAX_WORDS: usize = 1_000;

/// Why a word could not be read.
#[derive(Debug, ThisError)]
pub enum NoWord {
    /// The text is not a valid word, for this reason.
    #[error("{0}")]
    Wrong(Box<dyn Error + Send + Sync>),
    /// The file does not contain a valid word.
    #[error("the word in {}: {why}", .path.display())]
    InFile {
        /// The file's path.
        path: PathBuf,
        /// The mistake.
        why: Box<dyn Error + Send + Sync>,
    },
    /// A line of the file is not a valid word.
    #[error("line {number} of {}: {why}", .path.display())]
    InLine {
        /// The file's path.
        path: PathBuf,
        /// The line's number, counted from 1.
        number: usize,
        /// The mistake.
        why: Box<dyn Error + Send + Sync>,
    },
    /// A file has no line with a word.
    #[error("{} holds no word", .0.display())]
    Empty(PathBuf),
    /// A file is none that a person wrote.
    #[error("{} holds no word: it is not text", .0.display())]
    NoText(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file's path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// More than an option takes.
    #[error("{0} words, and {MAX_WORDS} are the most")]
    TooMany(usize),
    /// The option with this name has no valid word.
    #[error("{0}")]
    Of(&'static str, #[source] Box<NoWord>),
}

impl NoWord {
    /// Makes the error for a word of an option.
    pub(crate) fn of(option: &'static str, why: impl Error + Send + Sync + 'static) -> Self {
        Self::Of(option, Box::new(Self::Wrong(why.into())))
    }

    /// Whether the user's input is wrong. Otherwise the system could not read a file.
    #[must_use]
    pub fn is_mistyped(&self) -> bool {
        match self {
            Self::Read { .. } => false,
            Self::Of(_, inner) => inner.is_mistyped(),
            _ => true,
        }
    }
}

/// The most letters that are shown of a text which could be a secret.
const MAX_SHOWN_LETTERS: usize = 24;

/// A text that a person may have mistaken for something else, for an error: of a long one, which
/// could be a secret, the beginning alone.
#[must_use]
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN_LETTERS) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.chars().take(MAX_SHOWN_LETTERS / 2).chain(['…']).collect()),
    }
}

type Result<T> = std::result::Result<T, NoWord>;

/// A word on the command line: the text itself, or `@FILE`, which is read when the word is needed.
pub struct WordArgument<T> {
    source: WordSource,
    kind: PhantomData<fn() -> T>,
}

#[derive(Clone)]
enum WordSource {
    Literal(Secret<String>),
    File(PathBuf),
}

impl<T> Clone for WordArgument<T> {
    fn clone(&self) -> Self {
        Self { source: self.source.clone(), kind: PhantomData }
    }
}

impl<T> fmt::Debug for WordArgument<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            WordSource::Literal(secret) => secret.fmt(f),
            WordSource::File(path) => write!(f, "@{}", path.display()),
        }
    }
}

impl<T> FromStr for WordArgument<T> {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let source = match text.strip_prefix('@') {
            Some(path) => WordSource::File(PathBuf::from(path)),
            None => WordSource::Literal(Secret::new(text.to_owned())),
        };
        Ok(Self { source, kind: PhantomData })
    }
}

impl<T> WordArgument<T> {
    /// Returns the word, if the argument is the text itself.
    pub(crate) fn literal(&self) -> Option<&str> {
        match &self.source {
            WordSource::Literal(text) => Some(text.expose()),
            WordSource::File(_) => None,
        }
    }
}

impl<T> WordArgument<T>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    /// Returns the value of the word. A file may hold other text beside the word, such as the whole
    /// output of `byway recv`.
    ///
    /// # Errors
    /// Its file cannot be read, or the word is none.
    pub fn value(&self) -> Result<T> {
        match &self.source {
            WordSource::Literal(text) => {
                text.expose().trim().parse::<T>().map_err(|error| NoWord::Wrong(error.into()))
            }
            WordSource::File(path) => {
                let text = read(path, 2 * checked_text::MAX_LEN)?;
                let wrong = |error: T::Err| NoWord::InFile { path: path.clone(), why: error.into() };
                let whole = text.expose().trim().parse::<T>();
                whole.or_else(|error| among_others(text.expose()).ok_or(error)).map_err(wrong)
            }
        }
    }

    /// The values that it stands for: a file may hold one word a line. Empty lines and those that
    /// begin with `#` say nothing. A word may be folded: it goes on in the lines that follow.
    fn values(&self) -> Result<Vec<T>> {
        let WordSource::File(path) = &self.source else { return Ok(vec![self.value()?]) };
        let text = read(path, MAX_WORDS * (checked_text::MAX_LEN + 2))?;
        let lines = (1..).zip(text.expose().lines().map(str::trim));
        let lines: Vec<(usize, &str)> =
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
        let mut values = Vec::new();
        let mut left = lines.as_slice();
        while let Some(((number, line), rest)) = left.split_first() {
            let wrong =
                |error: T::Err| NoWord::InLine { path: path.clone(), number: *number, why: error.into() };
            let (value, used) = first_of(line, rest).map_err(wrong)?;
            values.push(value);
            left = rest.get(used..).unwrap_or_default();
        }
        if values.is_empty() {
            return Err(NoWord::Empty(path.clone()));
        }
        Ok(values)
    }
}

/// Returns the value of the word that begins in `line`, and the number of lines of `rest` that also
/// belong to the word.
fn first_of<T: FromStr>(line: &str, rest: &[(usize, &str)]) -> std::result::Result<(T, usize), T::Err> {
    let error = match line.parse() {
        Ok(value) => return Ok((value, 0)),
        Err(error) => error,
    };
    let folded = rest.iter().map(|(_, line)| *line).take_while(|line| !begins_word(line));
    let parts: Vec<&str> = iter::once(line).chain(folded).collect();
    let whole = Secret::new(parts.concat());
    whole.expose().parse().map(|value| (value, parts.len() - 1)).map_err(|_| error)
}

/// Whether a line begins with `byway`, as every ticket and word does.
fn begins_word(line: &str) -> bool {
    line.get(.."byway".len()).is_some_and(|head| head.eq_ignore_ascii_case("byway"))
}

/// Returns the first value of type `T` in a text whose words are separated by white space.
fn among_others<T: FromStr>(text: &str) -> Option<T> {
    text.split_whitespace().filter(|word| begins_word(word)).find_map(|word| word.parse().ok())
}

/// The values of a command line option that may be repeated. Each of `words` is one word, which is
/// a secret text, or the name of a file with one word per line.
///
/// # Errors
/// A word is invalid, a file cannot be read, or there are more than [`MAX_WORDS`] words.
pub fn values<T>(words: &[WordArgument<T>], option: &'static str) -> Result<Vec<T>>
where
    T: FromStr,
    T::Err: Error + Send + Sync + 'static,
{
    let mut all = Vec::new();
    for word in words {
        all.extend(word.values().map_err(|error| NoWord::Of(option, Box::new(error)))?);
    }
    if all.len() > MAX_WORDS {
        return Err(NoWord::Of(option, Box::new(NoWord::TooMany(all.len()))));
    }
    Ok(all)
}

/// Reads a file, at most `most` bytes and one more.
fn read(path: &Path, most: usize) -> Result<Secret<String>> {
    let text = File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(most as u64 + 1).read_to_string(&mut text)?;
        Ok(Secret::new(text))
    });
    text.map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => NoWord::NoText(path.to_owned()),
        _ => NoWord::Read { path: path.to_owned(), source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{KeyError, PublicKey};
    use std::fs;

    #[test]
    fn a_word_comes_from_the_argument_or_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        let key = PublicKey([7; 32]);
        let word = |text: &str| text.parse::<WordArgument<PublicKey>>().unwrap();
        assert_eq!(word(&key.to_string()).value().unwrap(), key);
        let from_file = word(&format!("@{}", file.display()));
        assert!(!from_file.value().unwrap_err().is_mistyped());
        fs::write(&file, format!("{key}\n")).unwrap();
        assert_eq!(from_file.value().unwrap(), key);
        fs::write(&file, "nonsense").unwrap();
        let error = from_file.value().unwrap_err();
        assert!(
            error.is_mistyped() && error.to_string().ends_with(&KeyError::NotAKey.to_string()),
            "{error}"
        );
        fs::write(&file, format!("# ours\n{key}\n\n {key} \r\n")).unwrap();
        assert_eq!(values(&[from_file.clone(), word(&key.to_string())], "--to").unwrap(), [key; 3]);
        let text = key.to_string();
        let (head, tail) = text.split_at(30);
        fs::write(&file, format!("{head}\n  {tail}\n")).unwrap();
        assert_eq!(from_file.value().unwrap(), key);
        fs::write(&file, format!("{key}\n{head}\n  {tail}\n# more\n{key}\n")).unwrap();
        assert_eq!(values(std::slice::from_ref(&from_file), "--to").unwrap(), [key; 3]);
        fs::write(&file, format!("listening\non the other host: byway send PATH {key}\n")).unwrap();
        assert_eq!(from_file.value().unwrap(), key);
        fs::write(&file, format!("{key}\nnonsense\n")).unwrap();
        let error = values(std::slice::from_ref(&from_file), "--to").unwrap_err();
        assert!(error.source().unwrap().to_string().starts_with("line 2 of "), "{error:?}");
        fs::write(&file, format!("{key}\n").repeat(MAX_WORDS)).unwrap();
        assert_eq!(values(std::slice::from_ref(&from_file), "--to").unwrap().len(), MAX_WORDS);
        let error = values(&[from_file.clone(), from_file.clone()], "--to").unwrap_err();
        assert_eq!(error.source().unwrap().to_string(), "2000 words, and 1000 are the most");
        fs::write(&file, "# nothing\n").unwrap();
        assert!(values(std::slice::from_ref(&from_file), "--to").unwrap_err().is_mistyped());
        fs::write(&file, [0xff; 4]).unwrap();
        assert!(from_file.value().unwrap_err().is_mistyped());
        assert_eq!(format!("{:?}", word("byway1-secret")), "[redacted]");
    }
}
