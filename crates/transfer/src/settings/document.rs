//! The text of a configuration file: tables, keys and values, each with its line.
//!
//! What is read here is a part of TOML, and means the same there:
//!
//! | read | refused, with its line |
//! |---|---|
//! | `[table]`, `[peer.nas]`, `[peer."nas.home"]` | `[[table]]` |
//! | `key = "text"`, `'text'`, `true`, `7`, `["a", "b"]` | `{ … }`, `"""…"""`, lists in lists, dates |
//! | `nas.ticket = "…"`, comments, lists over several lines | the same key or table twice |
//!
//! Every piece knows where it stands in the text, so that an edit leaves the rest as it is.

use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

/// The parsed text of a configuration file.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Headers of tables, in order.
    pub headers: Vec<Header>,
    /// Keys with values, in order.
    pub entries: Vec<Entry>,
}

/// A part of a name with dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The part's name, without quotes.
    pub name: String,
    /// The part's place in the text, with quotes.
    pub span: Range<usize>,
}

/// The header of a table.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// The table's name.
    pub path: Vec<Key>,
    /// The header's line, counted from 1.
    pub line: usize,
    /// The place of the header's line in the text, with the line feed.
    pub span: Range<usize>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The index of the table's header. `None`: the entry is before the first header.
    pub header: Option<usize>,
    /// The entry's own key, without the header's.
    pub key: Vec<Key>,
    /// The value of the key.
    pub value: Value,
    /// The place of the value in the text, with quotes.
    pub value_span: Range<usize>,
    /// The entry's line, counted from 1.
    pub line: usize,
    /// The place of the entry's lines in the text, with the line feed.
    pub span: Range<usize>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A text in quotes.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A number.
    Number,
    /// A list of values, each with its line.
    List(Vec<(usize, Value)>),
}

impl Value {
    /// Returns the kind of the value, in words.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Flag(_) => "true or false",
            Self::Number => "a number",
            Self::List(_) => "a list",
        }
    }
}

/// A mistake in the text, and its line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub(super) struct Mistake {
    pub line: usize,
    pub what: MistakeKind,
}

/// The kind of a mistake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum MistakeKind {
    #[error("write `key = \"value\"`, `[table]` or a comment after `#`")]
    NoKey,
    #[error("the table's name ends with `]`")]
    NoHeader,
    #[error("a table in two brackets has no meaning here: write it in one")]
    TableList,
    #[error("`=` and a value must follow the key")]
    NoEquals,
    #[error("write the value in quotes, as in `key = \"value\"`")]
    NoValue,
    #[error("a value in braces is not read here: write a table, and a line for each key")]
    InlineTable,
    #[error("a value in three quotes is not read here: write it in one line")]
    LongText,
    #[error("a list inside a list has no meaning here")]
    NestedList,
    #[error("the list has no end: write `]`")]
    NoListEnd,
    #[error("the quote has no end in this line")]
    NoQuoteEnd,
    #[error("a backslash must be followed by one of `\\ \" n t r b f u`: use single quotes for it")]
    Escape,
    #[error("nothing but a comment may follow here")]
    Rest,
    #[error("a control character stands here")]
    Control,
    #[error("this name was used before, in line {0}")]
    Twice(usize),
}

/// The use of a name so far, and its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Value,
    /// A table with a header of its own.
    Header,
    /// A table that only has tables with headers below it.
    Above,
    /// A table that keys with dots below this header made.
    Dotted(Option<usize>),
}

impl Document {
    /// Reads a text.
    ///
    /// # Errors
    /// The first mistake in it.
    pub(super) fn read(text: &str) -> Result<Self, Mistake> {
        let mut scanner = Scanner { text, at: text.len() - strip_mark(text).len(), line: 1 };
        let (mut document, mut uses) = (Self::default(), BTreeMap::new());
        while scanner.at < text.len() {
            let (start, line) = (scanner.at, scanner.line);
            scanner.blanks();
            match scanner.peek() {
                None | Some('\n' | '\r' | '#') => scanner.end_of_line()?,
                Some('[') => {
                    let path = scanner.header()?;
                    scanner.end_of_line()?;
                    note_header(&mut uses, &path, line)?;
                    document.headers.push(Header { path, line, span: start..scanner.at });
                }
                Some(_) => {
                    let key = scanner.path().map_err(|mistake| match mistake.what {
                        MistakeKind::NoHeader => scanner.mistake(MistakeKind::NoKey),
                        _ => mistake,
                    })?;
                    if !scanner.take('=') {
                        return Err(scanner.mistake(MistakeKind::NoEquals));
                    }
                    scanner.blanks();
                    let value_start = scanner.at;
                    let value = scanner.value(true)?;
                    let value_span = value_start..scanner.at;
                    scanner.end_of_line()?;
                    let header = document.headers.len().checked_sub(1);
                    let table = header.and_then(|at| document.headers.get(at)).map(|it| it.path.as_slice());
                    note_entry(&mut uses, header, table.unwrap_or_default(), &key, line)?;
                    let span = start..scanner.at;
                    document.entries.push(Entry { header, key, value, value_span, line, span });
                }
            }
        }
        Ok(document)
    }

    /// Returns the whole name of an entry, with the name of its table.
    pub(super) fn name_of<'a>(&'a self, entry: &'a Entry) -> Vec<&'a str> {
        let table = entry.header.and_then(|at| self.headers.get(at));
        let table = table.map(|header| header.path.as_slice()).unwrap_or_default();
        table.iter().chain(&entry.key).map(|key| key.name.as_str()).collect()
    }
}

/// The text after a byte order mark, which some editors write.
fn strip_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

type Uses = BTreeMap<Vec<String>, (Use, usize)>;

fn names(path: &[Key]) -> Vec<String> {
    path.iter().map(|key| key.name.clone()).collect()
}

fn note_header(uses: &mut Uses, path: &[Key], line: usize) -> Result<(), Mistake> {
    let full = names(path);
    for end in 1..full.len() {
        let above = full.get(..end).unwrap_or_default().to_vec();
        let (usage, first) = *uses.entry(above).or_insert((Use::Above, line));
        if usage == Use::Value {
            return Err(Mistake { line, what: MistakeKind::Twice(first) });
        }
    }
    match uses.insert(full, (Use::Header, line)) {
        None | Some((Use::Above, _)) => Ok(()),
        Some((_, first)) => Err(Mistake { line, what: MistakeKind::Twice(first) }),
    }
}

fn note_entry(
    uses: &mut Uses,
    header: Option<usize>,
    table: &[Key],
    key: &[Key],
    line: usize,
) -> Result<(), Mistake> {
    let full = [names(table), names(key)].concat();
    for end in table.len() + 1..full.len() {
        let above = full.get(..end).unwrap_or_default().to_vec();
        let (usage, first) = *uses.entry(above).or_insert((Use::Dotted(header), line));
        if usage != Use::Dotted(header) {
            return Err(Mistake { line, what: MistakeKind::Twice(first) });
        }
    }
    match uses.insert(full, (Use::Value, line)) {
        None => Ok(()),
        Some((_, first)) => Err(Mistake { line, what: MistakeKind::Twice(first) }),
    }
}

/// A place in a text.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Scanner<'a> {
    const fn mistake(&self, what: MistakeKind) -> Mistake {
        Mistake { line: self.line, what }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn take(&mut self, letter: char) -> bool {
        let is_there = self.peek() == Some(letter);
        if is_there {
            self.at += letter.len_utf8();
        }
        is_there
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    /// Takes blanks, a comment, and the end of the line or the text.
    fn end_of_line(&mut self) -> Result<(), Mistake> {
        self.blanks();
        if self.take('#') {
            while let Some(letter) = self.peek().filter(|letter| !matches!(letter, '\n' | '\r')) {
                self.plain(letter)?;
            }
        }
        match self.peek() {
            None => return Ok(()),
            Some('\n') => self.at += 1,
            Some('\r') if self.rest().starts_with("\r\n") => self.at += 2,
            Some('\r') => return Err(self.mistake(MistakeKind::Control)),
            Some(_) => return Err(self.mistake(MistakeKind::Rest)),
        }
        self.line += 1;
        Ok(())
    }

    /// Takes a letter that is no control character but perhaps a tab.
    fn plain(&mut self, letter: char) -> Result<char, Mistake> {
        if letter.is_ascii_control() && letter != '\t' {
            return Err(self.mistake(MistakeKind::Control));
        }
        self.at += letter.len_utf8();
        Ok(letter)
    }

    fn header(&mut self) -> Result<Vec<Key>, Mistake> {
        self.at += 1;
        if self.peek() == Some('[') {
            return Err(self.mistake(MistakeKind::TableList));
        }
        let path = self.path()?;
        if !self.take(']') {
            return Err(self.mistake(MistakeKind::NoHeader));
        }
        Ok(path)
    }

    /// Reads keys with dots between them, and blanks around the dots.
    fn path(&mut self) -> Result<Vec<Key>, Mistake> {
        let mut path = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            let name = match self.peek() {
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                _ => {
                    let is_bare = |letter: &char| letter.is_ascii_alphanumeric() || "_-".contains(*letter);
                    let name: String = self.rest().chars().take_while(is_bare).collect();
                    self.at += name.len();
                    if name.is_empty() {
                        return Err(self.mistake(MistakeKind::NoHeader));
                    }
                    name
                }
            };
            path.push(Key { name, span: start..self.at });
            self.blanks();
            if !self.take('.') {
                return Ok(path);
            }
        }
    }

    fn value(&mut self, may_be_list: bool) -> Result<Value, Mistake> {
        match self.peek() {
            Some('"' | '\'') if ["\"\"\"", "'''"].iter().any(|three| self.rest().starts_with(three)) => {
                Err(self.mistake(MistakeKind::LongText))
            }
            Some(quote @ ('"' | '\'')) => Ok(Value::Text(self.quoted(quote)?)),
            Some('[') if may_be_list => self.list(),
            Some('[') => Err(self.mistake(MistakeKind::NestedList)),
            Some('{') => Err(self.mistake(MistakeKind::InlineTable)),
            _ => {
                let is_part = |letter: &char| letter.is_ascii_alphanumeric() || "+-_.:".contains(*letter);
                let word: String = self.rest().chars().take_while(is_part).collect();
                let value = match word.as_str() {
                    "true" => Value::Flag(true),
                    "false" => Value::Flag(false),
                    other if is_number(other) => Value::Number,
                    _ => return Err(self.mistake(MistakeKind::NoValue)),
                };
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn list(&mut self) -> Result<Value, Mistake> {
        let begun = self.line;
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.gap()?;
            match self.peek() {
                None => return Err(Mistake { line: begun, what: MistakeKind::NoListEnd }),
                Some(']') => break,
                Some(_) => {}
            }
            values.push((self.line, self.value(false)?));
            self.gap()?;
            if !self.take(',') && self.peek() != Some(']') {
                return Err(Mistake { line: begun, what: MistakeKind::NoListEnd });
            }
        }
        self.at += 1;
        Ok(Value::List(values))
    }

    /// Blanks, comments and ends of lines between the values of a list.
    fn gap(&mut self) -> Result<(), Mistake> {
        loop {
            self.blanks();
            if !matches!(self.peek(), Some('\n' | '\r' | '#')) {
                return Ok(());
            }
            self.end_of_line()?;
        }
    }

    fn quoted(&mut self, quote: char) -> Result<String, Mistake> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n' | '\r') => return Err(self.mistake(MistakeKind::NoQuoteEnd)),
                Some(letter) if letter == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') if quote == '"' => {
                    self.at += 1;
                    text.push(self.escape().ok_or_else(|| self.mistake(MistakeKind::Escape))?);
                }
                Some(letter) => text.push(self.plain(letter)?),
            }
        }
    }

    /// Reads the character of an escape sequence, behind the backslash.
    fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            '"' => '"',
            '\\' => '\\',
            kind @ ('u' | 'U') => {
                let digits = self.rest().get(..if kind == 'u' { 4 } else { 8 })?;
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                self.at += digits.len();
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        })
    }
}

/// Whether a text is a whole or decimal number, as TOML writes them.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits(whole) && is_digits(part) && (whole == "0" || !whole.starts_with('0')) && whole.len() <= 18
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(text: &str) -> Result<Vec<(String, Value)>, (usize, MistakeKind)> {
        let document = Document::read(text).map_err(|mistake| (mistake.line, mistake.what))?;
        let flat = document.entries.iter().map(|it| (document.name_of(it).join("/"), it.value.clone()));
        Ok(flat.collect())
    }

    #[test]
    fn tables_keys_and_values_are_read_with_their_lines() {
        let text = "\u{feff}# mine\r\nstate-dir = '/x' # here\n\n[ peer . nas ]\r\nticket = \"a\\\"\\u00fcb\"\n\
                    [peer]\n\"nas.home\".ticket = \"t\"\n[send]\nretry = true\nn = -1.5\n\
                    relay = [ # two\n \"a\",\n\n 'b', ]\nempty=[]";
        let texts = |words: &[(usize, &str)]| {
            Value::List(words.iter().map(|(line, word)| (*line, Value::Text((*word).into()))).collect())
        };
        let read = flat(text).unwrap();
        let expected = [
            ("state-dir", Value::Text("/x".into())),
            ("peer/nas/ticket", Value::Text("a\"üb".into())),
            ("peer/nas.home/ticket", Value::Text("t".into())),
            ("send/retry", Value::Flag(true)),
            ("send/n", Value::Number),
            ("send/relay", texts(&[(12, "a"), (14, "b")])),
            ("send/empty", Value::List(Vec::new())),
        ];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value)));
        let lines: Vec<usize> =
            Document::read(text).unwrap().entries.iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [2, 5, 7, 9, 10, 11, 15]);
    }

    #[test]
    fn each_mistake_is_told_with_its_line() {
        use MistakeKind as M;
        for (text, line, what) in [
            ("\n=", 2, M::NoKey),
            ("[a", 1, M::NoHeader),
            ("[[a]]", 1, M::TableList),
            ("a", 1, M::NoEquals),
            ("a = ", 1, M::NoValue),
            ("a = 10Mbit", 1, M::NoValue),
            ("a = 01", 1, M::NoValue),
            ("a = { b = 1 }", 1, M::InlineTable),
            ("a = \"\"\"b\"\"\"", 1, M::LongText),
            ("a = [[]]", 1, M::NestedList),
            ("a = [1\n2]", 1, M::NoListEnd),
            ("a = [\n1,", 1, M::NoListEnd),
            ("a = 'b\n'", 1, M::NoQuoteEnd),
            ("a = \"\\q\"", 1, M::Escape),
            ("a = \"\\ud800\"", 1, M::Escape),
            ("a = 1 b", 1, M::Rest),
            ("a = 1\rb = 2", 1, M::Control),
            ("# \0", 1, M::Control),
            ("a = 1\na = 2", 2, M::Twice(1)),
            ("a = 1\n[a]", 2, M::Twice(1)),
            ("a = 1\n[a.b]", 2, M::Twice(1)),
            ("[a]\n[a]", 2, M::Twice(1)),
            ("[a.b]\n[a]\nb.c = 1", 3, M::Twice(1)),
            ("[a]\nb.c = 1\n[a.b]", 3, M::Twice(2)),
        ] {
            assert_eq!(flat(text).unwrap_err(), (line, what), "{text:?}");
        }
        assert!(flat("[a.b]\n[a]\nc = 1\n[d]\ne.f = 1\ne.g = 2\n[d.e.h]").is_ok());
    }

    /// Collects the values that the `toml` crate reads.
    fn by_toml(value: &toml::Value, name: &str, found: &mut BTreeMap<String, Value>) {
        let of = |value: &toml::Value| match value {
            toml::Value::String(text) => Value::Text(text.clone()),
            toml::Value::Boolean(flag) => Value::Flag(*flag),
            _ => Value::Number,
        };
        match value {
            toml::Value::Table(table) => {
                for (key, value) in table {
                    by_toml(value, &format!("{name}/{key}"), found);
                }
            }
            toml::Value::Array(list) => {
                let list = list.iter().map(|value| (0, of(value))).collect();
                found.insert(name.into(), Value::List(list));
            }
            value => {
                found.insert(name.into(), of(value));
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_read_here_means_the_same_in_toml(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "[", "]", "a", "b", "peer", ".", "=", "=", "\"x\"", "'y'", "\"", "'", "\\", "\\n",
                    "\\u00e9", "true", "1", "-2.5", "0", "_", ",", "\n", "\n", "\r\n", " ", "#", "ü",
                    "[a]\n", "[a.b]\n", "[peer.a]\n", "a = 1\n", "b.a = 'z'\n", "a.b = [1, 'q',]\n",
                ]),
                0..24,
            )
        ) {
            let text = parts.concat();
            if let Ok(document) = Document::read(&text) {
                let other: toml::Value = toml::from_str(&text).map_err(|error| {
                    TestCaseError::fail(format!("{text:?}: {error}"))
                })?;
                let mut expected = BTreeMap::new();
                by_toml(&other, "", &mut expected);
                let own: BTreeMap<String, Value> = document.entries.iter().map(|entry| {
                    let value = match &entry.value {
                        Value::List(list) => Value::List(list.iter().map(|(_, it)| (0, it.clone())).collect()),
                        other => other.clone(),
                    };
                    (format!("/{}", document.name_of(entry).join("/")), value)
                }).collect();
                prop_assert_eq!(own, expected, "{:?}", text);
            }
        }
    }
}
