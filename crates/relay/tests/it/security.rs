//! docs/security.md names a test beside each thing that holds. A name that no test has would be a
//! claim that nobody holds.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn every_test_that_the_security_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let mut checked = 0;
    for quoted in page.split('`').skip(1).step_by(2) {
        let (file, name) = quoted.rsplit_once(' ').unwrap_or(("", quoted));
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        let is_command = file == "byway";
        if !is_name || is_command || (file.is_empty() && name.matches('_').count() < 2) {
            continue;
        }
        let file = match file.split_once('/') {
            Some(("E", rest)) => format!("crates/engine/tests/it/{rest}"),
            Some(("R", rest)) => format!("crates/relay/tests/it/{rest}"),
            Some(("G", rest)) => format!("crates/gateway/tests/it/{rest}"),
            Some(("F", rest)) => format!("crates/files/{rest}"),
            _ => file.to_owned(),
        };
        // A function, or a test in namespaces, which has its name in a list.
        let forms = [format!("fn {name}("), format!("::{name}\"")];
        let exists = files.iter().any(|(path, text)| {
            path.to_string_lossy().ends_with(&file) && forms.iter().any(|form| text.contains(form))
        });
        assert!(exists, "`{quoted}`: there is no such test");
        checked += 1;
    }
    assert!(checked > 40, "only {checked} names were found");
}
