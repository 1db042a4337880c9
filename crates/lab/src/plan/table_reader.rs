//! Reads the keys of a table one by one, and checks the type of each value. A key that is in the
//! table, but was never read, is an error: the plan has an unknown key.

use super::node::{Node, Table, Value};
use super::units::{self, QuantityKind};
use byway_wire::Duration;
use core::cell::RefCell;
use core::ops::Range;
use std::collections::BTreeMap;

/// A mistake: its place in the file, and its description.
pub(super) type SpannedError = (Range<usize>, String);

/// The value of each axis in the variant that is read.
pub(super) type Axes<'a> = BTreeMap<&'a str, &'a Node>;

/// A table that is being read.
pub(super) struct Reader<'a> {
    table: &'a Table,
    axes: &'a Axes<'a>,
    span: Range<usize>,
    used: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: &'a Table, span: Range<usize>, axes: &'a Axes<'a>) -> Self {
        Self { table, axes, span, used: RefCell::new(Vec::new()) }
    }

    /// Marks keys as known, since another part reads them.
    pub(super) fn knows(&self, keys: &[&str]) {
        self.used.borrow_mut().extend(keys.iter().map(|key| (*key).to_owned()));
    }

    /// The value of `key`, with the variant's values in place of `$axis`.
    pub(super) fn node(&self, key: &str) -> Result<Option<Node>, SpannedError> {
        self.used.borrow_mut().push(key.to_owned());
        self.table.get(key).map(|node| resolve(node, self.axes)).transpose()
    }

    /// The place of `key` in the file. If the key is missing, the table's place.
    pub(super) fn place(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.span.clone(), |node| node.span.clone())
    }

    /// Whether the plan has a value for `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Whether the value of `key` is a text.
    pub(super) fn is_text(&self, key: &str) -> Result<bool, SpannedError> {
        Ok(matches!(self.node(key)?, Some(Node { value: Value::Text(_), .. })))
    }

    /// An error at the place of `key`.
    pub(super) fn wrong<T>(&self, key: &str, what: impl Into<String>) -> Result<T, SpannedError> {
        Err((self.place(key), format!("`{key}`: {}", what.into())))
    }

    /// The value of a required key. An error: it is missing.
    pub(super) fn needed<T>(&self, key: &str, expected: &str, value: Option<T>) -> Result<T, SpannedError> {
        value.ok_or_else(|| (self.span.clone(), format!("`{key}` is missing: expected {expected}")))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, SpannedError> {
        match self.node(key)? {
            None => Ok(None),
            Some(node) => match node.value {
                Value::Text(text) => Ok(Some(text)),
                other => self.wrong(key, format!("expected a text, found {}", other.describe())),
            },
        }
    }

    pub(super) fn truth(&self, key: &str) -> Result<Option<bool>, SpannedError> {
        match self.node(key)? {
            None => Ok(None),
            Some(node) => match node.value {
                Value::Truth(truth) => Ok(Some(truth)),
                other => self.wrong(key, format!("expected true or false, found {}", other.describe())),
            },
        }
    }

    /// Reads a quantity of one of `kinds`, in base units.
    pub(super) fn quantity(
        &self,
        key: &str,
        kinds: &[QuantityKind],
    ) -> Result<Option<(QuantityKind, f64)>, SpannedError> {
        self.node(key)?.map(|node| quantity(&node, key, kinds)).transpose()
    }

    pub(super) fn time(&self, key: &str) -> Result<Option<Duration>, SpannedError> {
        match self.quantity(key, &[QuantityKind::Time])? {
            None => Ok(None),
            Some((_, seconds)) => match units::duration(seconds) {
                Some(time) => Ok(Some(time)),
                None => self.wrong(key, "expected a time from 0 to ten years"),
            },
        }
    }

    pub(super) fn rate(&self, key: &str) -> Result<Option<u64>, SpannedError> {
        match self.quantity(key, &[QuantityKind::Rate])? {
            None => Ok(None),
            Some((_, rate)) if (1.0..=1e13).contains(&rate) => Ok(Some(libm::round(rate) as u64)),
            Some(_) => self.wrong(key, "a line of no rate carries nothing: expected 1 bit/s to 10 Tbit/s"),
        }
    }

    pub(super) fn size(&self, key: &str) -> Result<Option<u64>, SpannedError> {
        match self.quantity(key, &[QuantityKind::Size])? {
            None => Ok(None),
            Some((_, bytes)) if (1.0..=1e15).contains(&bytes) => Ok(Some(libm::round(bytes) as u64)),
            Some(_) => self.wrong(key, "expected 1 B to 1 PB"),
        }
    }

    pub(super) fn share(&self, key: &str) -> Result<Option<f64>, SpannedError> {
        match self.quantity(key, &[QuantityKind::Share, QuantityKind::Number])? {
            None => Ok(None),
            Some((_, share)) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
            Some(_) => self.wrong(key, "expected a share from 0 to 1, or 0 % to 100 %"),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<f64>, SpannedError> {
        Ok(self.quantity(key, &[QuantityKind::Number])?.map(|(_, number)| number))
    }

    /// A whole number from 0 to `most`.
    pub(super) fn count(&self, key: &str, most: u32) -> Result<Option<u32>, SpannedError> {
        match self.number(key)? {
            None => Ok(None),
            Some(number) if libm::trunc(number) == number && (0.0..=f64::from(most)).contains(&number) => {
                Ok(Some(number as u32))
            }
            Some(number) => {
                self.wrong(key, format!("expected a whole number from 0 to {most}, found {number}"))
            }
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<Option<Vec<Node>>, SpannedError> {
        match self.node(key)? {
            None => Ok(None),
            Some(node) => match node.value {
                Value::List(list) => Ok(Some(list)),
                other => self.wrong(key, format!("expected a list, found {}", other.describe())),
            },
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, SpannedError> {
        let Some(list) = self.list(key)? else { return Ok(None) };
        list.into_iter()
            .map(|node| match node.value {
                Value::Text(text) => Ok(text),
                other => Err((node.span, format!("`{key}`: expected texts, found {}", other.describe()))),
            })
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Reads the table under `key` with `read`. Keys that `read` does not use are an error.
    pub(super) fn table<T>(
        &self,
        key: &str,
        read: impl FnOnce(&Reader<'_>) -> Result<T, SpannedError>,
    ) -> Result<Option<T>, SpannedError> {
        match self.node(key)? {
            None => Ok(None),
            Some(Node { value: Value::Table(table), span }) => {
                let reader = Reader::new(&table, span, self.axes);
                let value = read(&reader)?;
                reader.finish()?;
                Ok(Some(value))
            }
            Some(node) => self.wrong(key, format!("expected a table, found {}", node.value.describe())),
        }
    }

    /// Reads each `[[key]]` with `read`.
    pub(super) fn each<T>(
        &self,
        key: &str,
        mut read: impl FnMut(&Reader<'_>) -> Result<T, SpannedError>,
    ) -> Result<Vec<T>, SpannedError> {
        let Some(list) = self.list(key)? else { return Ok(Vec::new()) };
        list.into_iter()
            .map(|node| match node.value {
                Value::Table(table) => {
                    let reader = Reader::new(&table, node.span, self.axes);
                    let value = read(&reader)?;
                    reader.finish()?;
                    Ok(value)
                }
                other => Err((node.span, format!("expected [[{key}]], found {}", other.describe()))),
            })
            .collect()
    }

    /// Returns all remaining keys of the table with their values, which must be numbers.
    pub(super) fn numbers(&self) -> Result<BTreeMap<String, f64>, SpannedError> {
        let mut found = BTreeMap::new();
        for (key, ..) in &self.table.0 {
            if self.used.borrow().contains(key) {
                continue;
            }
            let node = self.node(key)?;
            let Some(node) = node else { continue };
            let value = match &node.value {
                Value::Truth(truth) => f64::from(u8::from(*truth)),
                _ => {
                    quantity(
                        &node,
                        key,
                        &[
                            QuantityKind::Number,
                            QuantityKind::Share,
                            QuantityKind::Rate,
                            QuantityKind::Time,
                            QuantityKind::Packets,
                        ],
                    )?
                    .1
                }
            };
            found.insert(key.clone(), value);
        }
        Ok(found)
    }

    /// Returns an error if the table has a key that was not read. The error lists the possible
    /// keys.
    pub(super) fn finish(&self) -> Result<(), SpannedError> {
        let used = self.used.borrow();
        match self.table.0.iter().find(|(key, ..)| !used.contains(key)) {
            None => Ok(()),
            Some((key, span, _)) => {
                let mut known = used.clone();
                known.sort();
                known.dedup();
                Err((span.clone(), format!("unknown key `{key}`: expected one of {}", known.join(", "))))
            }
        }
    }
}

/// Reads the value of `key`, `node`, as a quantity of one of `kinds`.
pub(super) fn quantity(
    node: &Node,
    key: &str,
    kinds: &[QuantityKind],
) -> Result<(QuantityKind, f64), SpannedError> {
    let expected = || kinds.iter().map(|kind| kind.expected()).collect::<Vec<_>>().join(", or ");
    let found = match &node.value {
        Value::Number(number) => Some((QuantityKind::Number, *number)),
        Value::Text(text) => units::parse(text),
        _ => None,
    };
    match found {
        Some((kind, value)) if kinds.contains(&kind) => Ok((kind, value)),
        Some((QuantityKind::Number, value)) => {
            Err((node.span.clone(), format!("`{key}`: {value} has no unit: expected {}", expected())))
        }
        _ => Err((
            node.span.clone(),
            format!("`{key}`: expected {}, found {}", expected(), node.value.describe()),
        )),
    }
}

/// Puts the values of the variant in the place of `$axis` and `$axis.field`.
fn resolve(node: &Node, axes: &Axes<'_>) -> Result<Node, SpannedError> {
    let wrong = |what: String| (node.span.clone(), what);
    let value = match &node.value {
        Value::Text(text) if text.contains('$') => match text.strip_prefix('$') {
            Some(name) if name_length(name) == name.len() => lookup(name, axes).map_err(wrong)?.value.clone(),
            _ => Value::Text(substitute(text, axes).map_err(wrong)?),
        },
        Value::List(list) => {
            Value::List(list.iter().map(|inner| resolve(inner, axes)).collect::<Result<_, _>>()?)
        }
        other => other.clone(),
    };
    Ok(Node { value, span: node.span.clone() })
}

/// Returns how many bytes of `text` are the name of an axis, perhaps with a field of its value.
fn name_length(text: &str) -> usize {
    let mut dotted = false;
    let end = text.char_indices().find(|&(at, c)| {
        let field =
            !dotted && text.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
        if c == '.' && field {
            dotted = true;
            return false;
        }
        !(c.is_alphanumeric() || c == '_')
    });
    end.map_or(text.len(), |(at, _)| at)
}

fn lookup<'a>(name: &str, axes: &Axes<'a>) -> Result<&'a Node, String> {
    let (axis, field) = name.split_once('.').map_or((name, None), |(axis, field)| (axis, Some(field)));
    let value = axes.get(axis).copied().ok_or_else(|| {
        let known: Vec<_> = axes.keys().copied().collect();
        format!("`${axis}` is no axis of [sweep]: there are {known:?}")
    })?;
    match (field, &value.value) {
        (None, _) => Ok(value),
        (Some(field), Value::Table(table)) => table
            .get(field)
            .ok_or_else(|| format!("the value of axis `{axis}` in this variant has no `{field}`")),
        (Some(field), other) => Err(format!(
            "`${name}`: the value of axis `{axis}` is {}, which has no `{field}`",
            other.describe()
        )),
    }
}

fn substitute(text: &str, axes: &Axes<'_>) -> Result<String, String> {
    let mut pieces = text.split('$');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_at(name_length(piece));
        out += &lookup(name, axes)?.value.label();
        out += rest;
    }
    Ok(out)
}
