//! Axes and their combinations.

use super::node::{Node, Table, Value};
use super::seed_choice::SeedChoice;
use super::table_reader::SpannedError;

/// The changes to the plan from the command line.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The seeds that the plan runs with.
    pub seeds: Option<SeedChoice>,
    /// Values of axes of the sweep.
    pub sweep: Vec<(String, Vec<String>)>,
}

impl Overrides {
    /// Whether the command line changes nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.seeds.is_none() && self.sweep.is_empty()
    }
}

/// An axis of the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name of the axis.
    pub name: String,
    /// The labels of the axis in the order of the plan.
    pub labels: Vec<String>,
}

/// The value of one axis in a variant: the axis's name, the label, and the value.
pub(super) type AxisValue = (String, String, Node);

/// The axes of `[sweep]`, and the combinations left out by `[[skip]]`.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    axes: Vec<(String, Vec<(String, Node)>)>,
    /// Combinations that are left out: these labels of each named axis.
    skips: Vec<Vec<(String, Vec<String>)>>,
}

/// Returns the axis with the values that `new` names. A value is from `old` where that has the
/// label, or else from `new`.
pub(super) fn narrowed(old: &Node, new: &Node) -> Node {
    let Value::List(wanted) = &new.value else { return new.clone() };
    let known = values(old);
    let kept = wanted.iter().map(|node| {
        let label = node.value.label();
        let value =
            known.iter().find(|(known, _)| *known == label).map_or_else(|| node.clone(), |(_, v)| v.clone());
        (label, node.span.clone(), value)
    });
    Node { value: Value::Table(Table(kept.collect())), span: new.span.clone() }
}

/// Labels and values of an axis: a list, or a table of labels.
fn values(axis: &Node) -> Vec<(String, Node)> {
    match &axis.value {
        Value::List(list) => list.iter().map(|node| (node.value.label(), node.clone())).collect(),
        Value::Table(table) => table.0.iter().map(|(label, _, node)| (label.clone(), node.clone())).collect(),
        single => vec![(single.label(), axis.clone())],
    }
}

/// A label that several values have.
fn twice(values: &[(String, Node)]) -> Option<&str> {
    let mut labels: Vec<&str> = values.iter().map(|(label, _)| label.as_str()).collect();
    labels.sort_unstable();
    labels.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

impl Sweep {
    pub(super) fn read(
        sweep: Option<&Node>,
        skip: Option<&Node>,
        overrides: &Overrides,
    ) -> Result<Self, SpannedError> {
        let mut axes = Vec::new();
        match sweep.map(|node| &node.value) {
            None => {}
            Some(Value::Table(table)) => {
                for (name, span, axis) in &table.0 {
                    let values = values(axis);
                    if values.is_empty() {
                        return Err((
                            span.clone(),
                            format!("axis `{name}` has no value: expected at least one"),
                        ));
                    }
                    if let Some(twice) = twice(&values) {
                        return Err((span.clone(), format!("axis `{name}` has the value `{twice}` twice")));
                    }
                    axes.push((name.clone(), values));
                }
            }
            Some(_) => return Err((0..0, "`sweep`: expected axes with their values".into())),
        }
        for (name, wanted) in &overrides.sweep {
            let Some((_, values)) = axes.iter_mut().find(|(axis, _)| axis == name) else {
                let known: Vec<_> = axes.iter().map(|(name, _)| name.as_str()).collect();
                return Err((0..0, format!("--sweep {name}: the plan has the axes {}", known.join(", "))));
            };
            *values = wanted
                .iter()
                .map(|label| {
                    let known = values.iter().find(|(known, _)| known == label);
                    known.cloned().unwrap_or_else(|| (label.clone(), from_command_line(label)))
                })
                .collect();
            if let Some(twice) = twice(values) {
                return Err((0..0, format!("--sweep {name}: it has the value `{twice}` twice")));
            }
        }
        let skips = match skip.map(|node| &node.value) {
            None => Vec::new(),
            Some(Value::List(list)) => {
                list.iter().map(|node| skipped(node, &axes)).collect::<Result<_, _>>()?
            }
            Some(_) => return Err((0..0, "expected [[skip]]".into())),
        };
        Ok(Self { axes, skips })
    }

    pub(super) fn axes(&self) -> Vec<Axis> {
        self.axes
            .iter()
            .map(|(name, values)| Axis {
                name: name.clone(),
                labels: values.iter().map(|(label, _)| label.clone()).collect(),
            })
            .collect()
    }

    /// Every combination that is not skipped; the last axis changes fastest.
    pub(super) fn variants(&self, most: usize) -> Result<Vec<Vec<AxisValue>>, SpannedError> {
        let mut variants: Vec<Vec<AxisValue>> = vec![Vec::new()];
        for (name, values) in &self.axes {
            if variants.len().saturating_mul(values.len()) > most {
                return Err((0..0, format!("more than {most} variants: expected a smaller [sweep]")));
            }
            variants = variants
                .iter()
                .flat_map(|variant| {
                    values.iter().map(move |(label, node)| {
                        let mut longer = variant.clone();
                        longer.push((name.clone(), label.clone(), node.clone()));
                        longer
                    })
                })
                .collect();
        }
        variants.retain(|variant| {
            !self.skips.iter().any(|skip| {
                skip.iter().all(|(axis, labels)| {
                    variant.iter().any(|(name, label, _)| name == axis && labels.contains(label))
                })
            })
        });
        if variants.is_empty() {
            return Err((0..0, "every variant is skipped".into()));
        }
        Ok(variants)
    }
}

/// The value of a text on the command line: a number, a boolean or a string.
fn from_command_line(text: &str) -> Node {
    let value = match text {
        "true" => Value::Truth(true),
        "false" => Value::Truth(false),
        _ => text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Number),
    };
    Node { value, span: 0..0 }
}

fn skipped(
    node: &Node,
    axes: &[(String, Vec<(String, Node)>)],
) -> Result<Vec<(String, Vec<String>)>, SpannedError> {
    let Value::Table(table) = &node.value else {
        return Err((node.span.clone(), "expected [[skip]]".into()));
    };
    table
        .0
        .iter()
        .map(|(axis, span, value)| {
            if !axes.iter().any(|(name, _)| name == axis) {
                return Err((span.clone(), format!("[sweep] has no axis `{axis}`")));
            }
            Ok((axis.clone(), values(value).into_iter().map(|(label, _)| label).collect()))
        })
        .collect()
}
