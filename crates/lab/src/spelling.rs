//! Finds the known name that a mistyped one probably means.

/// Names longer than this are not compared: the work grows with the square of it.
const MAX_LETTERS: usize = 40;

/// Returns the name among `known` that is closest to `name`, if it is close enough for a typing
/// mistake.
#[must_use]
pub fn closest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = name.chars().count();
    if letters > MAX_LETTERS {
        return None;
    }
    known
        .into_iter()
        .filter(|known| known.chars().count() <= MAX_LETTERS)
        .map(|known| (strsim::levenshtein(name, known), known))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, _)| distance <= 1 + letters / 4)
        .map(|(_, known)| known)
}

/// Returns a message about an unknown name with the likely one: ``no transfer `bakup`; did you mean
/// `backup`?``, or else with all known names.
#[must_use]
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match closest(name, known.clone()) {
        Some(close) => format!("no {what} `{name}`: did you mean `{close}`?"),
        None => {
            let mut names: Vec<&str> = Vec::new();
            for name in known {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            match names.len() {
                0 => format!("no {what} `{name}`: there is none"),
                1..=12 => format!("no {what} `{name}`: there are {}", names.join(", ")),
                more => format!("no {what} `{name}`: there are {}, … ({more})", names[..12].join(", ")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let known = ["goodput", "path", "share", "queue"];
        assert_eq!(closest("godput", known), Some("goodput"));
        assert_eq!(closest("shrae", known), Some("share"));
        assert_eq!(closest("throughput", known), None);
        assert_eq!(closest(&"x".repeat(100_000), known), None);
    }
}
