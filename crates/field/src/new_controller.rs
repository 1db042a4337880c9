//! A crate for a congestion controller of one's own, as a folder to begin with.

use crate::error::{About as _, Error, Result};
use std::fs;
use std::path::Path;

/// The name of the controller in the template.
const TEMPLATE_NAME: &str = "my-law";
/// The files of the template, with their text.
const TEMPLATE_FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml")),
    ("README.md", include_str!("../template/README.md")),
    ("plan.toml", include_str!("../template/plan.toml")),
    ("src/lib.rs", include_str!("../template/lib.rs")),
    ("src/main.rs", include_str!("../template/main.rs")),
    ("tests/checks.rs", include_str!("../template/checks.rs")),
];
/// The longest name of a controller.
const MAX_NAME_LEN: usize = 40;

/// Writes a crate with a controller called `name` into the folder of that name in `place`. The
/// crate takes byway from the clone at `byway`, or from where it is published.
///
/// # Errors
/// The name is no name of a controller, there is such a folder, or it cannot be written.
pub fn write(place: &Path, name: &str, byway: Option<&Path>) -> Result<()> {
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.len() <= MAX_NAME_LEN
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    if !is_name {
        return Err(Error::Usage(format!(
            "`{name}` is no name of a controller: expected a letter, then up to 39 of a-z, 0-9 and hyphens"
        )));
    }
    let source = match byway {
        None => format!("git = {:?}", env!("CARGO_PKG_REPOSITORY")),
        Some(clone) => {
            let clone = clone.canonicalize().about(|| clone.display().to_string())?;
            format!("path = {:?}", clone.join("crates/CRATE"))
        }
    };
    let folder = place.join(name);
    let about = || folder.display().to_string();
    fs::create_dir(&folder).about(about)?;
    for (file, text) in TEMPLATE_FILES {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap_or(&folder)).about(about)?;
        let text: String = text.lines().map(|line| filled(line, name, &source) + "\n").collect();
        fs::write(&path, text).about(|| path.display().to_string())?;
    }
    Ok(())
}

/// A line of the template with the controller's name, and with where byway is.
fn filled(line: &str, name: &str, source: &str) -> String {
    let krate = line.split(' ').next().unwrap_or_default().trim_start_matches("byway-");
    let krate = if krate == "cli" { "byway-cli" } else { krate };
    line.replace(TEMPLATE_NAME, name)
        .replace(&TEMPLATE_NAME.replace('-', "_"), &name.replace('-', "_"))
        .replace("SOURCE", &source.replace("CRATE", krate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_written_once_and_names_its_controller() {
        let place = tempfile::tempdir().unwrap();
        let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        write(place.path(), "slow-start-2", Some(&clone)).unwrap();
        let read = |file: &str| fs::read_to_string(place.path().join("slow-start-2").join(file)).unwrap();
        let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
        for (name, dependency) in manifest["dependencies"].as_table().unwrap() {
            let path = Path::new(dependency["path"].as_str().unwrap());
            let theirs: toml::Table =
                toml::from_str(&fs::read_to_string(path.join("Cargo.toml")).unwrap()).unwrap();
            assert_eq!(theirs["package"]["name"].as_str(), Some(name.as_str()));
        }
        assert!(read("src/main.rs").contains("slow_start_2::CONTROLLER"));
        assert!(read("src/lib.rs").contains("name: \"slow-start-2\""));
        assert!(write(place.path(), "slow-start-2", None).is_err(), "there is such a folder");
        for wrong in ["", "../x", "Law", "a b", "x-", &"x".repeat(41)] {
            assert!(matches!(write(place.path(), wrong, None), Err(Error::Usage(_))), "{wrong}");
        }
        write(place.path(), "other", None).unwrap();
        let published = fs::read_to_string(place.path().join("other/Cargo.toml")).unwrap();
        assert!(
            published.contains("byway-wire = { git = \"https://github.com/byway/byway\" }"),
            "{published}"
        );
    }
}
