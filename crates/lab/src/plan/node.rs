//! TOML with its places: every value knows where in the file it stands, so that every error can say
//! so.

use core::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A TOML value, and its place in the file.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) span: Range<usize>,
}

/// A TOML value other than a date.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Number(f64),
    Truth(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<(String, Range<usize>, Node)>);

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(known, ..)| known == key).map(|(_, _, node)| node)
    }

    /// Puts `node` in place of the value of `key`, or at the end.
    pub(super) fn set(&mut self, key: &str, node: Node) {
        match self.0.iter_mut().find(|(known, ..)| known == key) {
            Some(entry) => entry.2 = node,
            None => self.0.push((key.to_owned(), node.span.clone(), node)),
        }
    }
}

impl Value {
    /// The kind of the value, for an error about an unexpected value.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Number(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
            Self::List(_) => "a list".into(),
            Self::Table(_) => "a table".into(),
        }
    }

    /// How the value of an axis is called.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::List(list) => list.iter().map(|node| node.value.label()).collect::<Vec<_>>().join("+"),
            other => other.describe(),
        }
    }
}

/// The whole of a file. The error is a place and a sentence.
pub(super) fn parse(source: &str) -> Result<Table, (Range<usize>, String)> {
    let document = DeTable::parse(source)
        .map_err(|error| (error.span().unwrap_or_default(), error.message().to_owned()))?;
    table(document.get_ref())
}

fn table(source: &DeTable<'_>) -> Result<Table, (Range<usize>, String)> {
    let mut entries = Vec::new();
    for (key, value) in source {
        entries.push((key.get_ref().to_string(), key.span(), node(value)?));
    }
    entries.sort_by_key(|(_, span, _)| span.start);
    Ok(Table(entries))
}

fn node(source: &Spanned<DeValue<'_>>) -> Result<Node, (Range<usize>, String)> {
    let span = source.span();
    let wrong = |what: &str| (span.clone(), what.to_owned());
    let value = match source.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| wrong("a number this large means nothing here"))?;
            Value::Number(whole as f64)
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().parse().map_err(|_| wrong("not a number"))?;
            if !number.is_finite() {
                return Err(wrong("expected a finite number"));
            }
            Value::Number(number)
        }
        DeValue::Boolean(truth) => Value::Truth(*truth),
        DeValue::Datetime(_) => return Err(wrong("a date means nothing here")),
        DeValue::Array(list) => Value::List(list.iter().map(node).collect::<Result<_, _>>()?),
        DeValue::Table(inner) => Value::Table(table(inner)?),
    };
    Ok(Node { value, span })
}
