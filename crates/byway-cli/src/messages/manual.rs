//! Messages of `byway man`.

use std::path::Path;

pub fn cannot_make_directory(directory: &Path) -> String {
    format!("cannot make the directory {}", directory.display())
}

pub fn cannot_write(file: &Path) -> String {
    format!("cannot write {}", file.display())
}
