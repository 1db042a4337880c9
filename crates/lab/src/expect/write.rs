//! Results for other programs: a row for each variant, seed and `[[show]]`.

use super::{ColumnResult, Measured};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes measured quantities as CSV (RFC 4180, but lines end in LF). There is one row per
/// quantity, combination of settings, and seed. The columns are the varied settings, the seed, and
/// the quantity's name, unit and value. A missing value is an empty field.
///
/// # Errors
/// Those of `out`.
pub fn csv(shows: &[ColumnResult], out: &mut impl Write) -> io::Result<()> {
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
    // What a buffer still holds is written when it is dropped, and a full disk is not told then.
    out.flush()
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
