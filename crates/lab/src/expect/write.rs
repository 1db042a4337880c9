//! Results for other programs: a row for each variant, seed and `[[show]]`.

use super::{Measured, Shown};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes `shows` as CSV (RFC 4180, lines end in LF): the axes, seed, measure, unit, value. A seed without a value has an empty
/// one.
///
/// # Errors
/// Those of `out`.
pub fn csv(shows: &[Shown], out: &mut impl Write) -> io::Result<()> {
    let first = shows.iter().find_map(|shown| shown.at.first());
    let axes = first.map(|measured| measured.variant.iter().map(|(axis, _)| axis.as_str()));
    let names = axes.into_iter().flatten().chain(["seed", "measure", "unit", "value"]);
    writeln!(out, "{}", names.map(quoted).collect::<Vec<_>>().join(","))?;
    for shown in shows {
        for measured in &shown.at {
            let labels = measured.variant.iter().map(|(_, label)| quoted(label));
            for (seed, value) in by_seed(measured) {
                let value = value.map_or_else(String::new, |value| value.to_string());
                let behind = [seed.to_string(), quoted(&shown.name), quoted(&shown.unit), value];
                writeln!(out, "{}", labels.clone().chain(behind).collect::<Vec<_>>().join(","))?;
            }
        }
    }
    Ok(())
}

/// Writes `shows` as a JSON array of the same rows. A seed without a value has `null`.
///
/// # Errors
/// Those of `out`.
pub fn json(shows: &[Shown], out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        variant: BTreeMap<&'a str, &'a str>,
        seed: u64,
        measure: &'a str,
        unit: &'a str,
        value: Option<f64>,
    }
    let mut rows = Vec::new();
    for shown in shows {
        for measured in &shown.at {
            let variant = measured.variant.iter().map(|(axis, label)| (axis.as_str(), label.as_str()));
            let variant: BTreeMap<_, _> = variant.collect();
            rows.extend(by_seed(measured).into_iter().map(|(seed, value)| Row {
                variant: variant.clone(),
                seed,
                measure: &shown.name,
                unit: &shown.unit,
                value,
            }));
        }
    }
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}

fn by_seed(measured: &Measured) -> BTreeMap<u64, Option<f64>> {
    let values = measured.seeds.iter().zip(&measured.values).map(|(&seed, &value)| (seed, Some(value)));
    values.chain(measured.missing.iter().map(|missing| (missing.seed, None))).collect()
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
