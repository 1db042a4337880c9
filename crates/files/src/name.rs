//! Names from another host: which are taken, and how they are shown.

pub use byway_wire::Printable;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The longest path in a manifest, in bytes (Linux `PATH_MAX` less its NUL). Also bounds a link's
/// target.
pub const MAX_PATH_LEN: usize = 4_095;
/// The longest component of a path, in bytes (Linux `NAME_MAX`).
pub const MAX_COMPONENT_LEN: usize = 255;
/// The directory in the sink's directory for contents that are not verified yet. No tree may have
/// an entry of this name at its top.
pub const PARTIAL_DIRECTORY: &str = ".byway-partial";

/// The directory in the sink's directory for entries that senders no longer have. No tree may have
/// an entry of this name at its top.
pub const TRASH_DIRECTORY: &str = ".byway-trash";

/// Why a name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// No bytes at all.
    #[error("the name is empty")]
    Empty,
    /// Over [`MAX_PATH_LEN`], or a component over [`MAX_COMPONENT_LEN`].
    #[error("the name is too long")]
    Long,
    /// Begins or ends with a slash, or has two in a row.
    #[error("the name has an empty component")]
    EmptyComponent,
    /// A component of the name is `.` or `..`.
    #[error("the name has a dot component")]
    Dots,
    /// Holds a NUL byte.
    #[error("the name has a NUL byte")]
    Nul,
    /// [`PARTIAL_DIRECTORY`] or [`TRASH_DIRECTORY`] at the top.
    #[error("the name is reserved for byway's own files")]
    Reserved,
}

/// Checks that `path` is relative and leads strictly below its starting directory, without
/// components that a kernel would interpret.
pub fn check_name(path: &[u8]) -> Result<(), NameError> {
    if path.is_empty() {
        return Err(NameError::Empty);
    }
    if path.len() > MAX_PATH_LEN {
        return Err(NameError::Long);
    }
    if path.contains(&0) {
        return Err(NameError::Nul);
    }
    for (index, component) in path.split(|byte| *byte == b'/').enumerate() {
        match component {
            b"" => return Err(NameError::EmptyComponent),
            b"." | b".." => return Err(NameError::Dots),
            _ if component.len() > MAX_COMPONENT_LEN => return Err(NameError::Long),
            _ if index == 0 && is_reserved(component) => return Err(NameError::Reserved),
            _ => {}
        }
    }
    Ok(())
}

fn is_reserved(name: &[u8]) -> bool {
    name == PARTIAL_DIRECTORY.as_bytes() || name == TRASH_DIRECTORY.as_bytes()
}

/// The path of a directory that is strictly below another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subdirectory(String);

impl Subdirectory {
    /// The path, without a slash at either end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The path of an entry of a tree that lands in this directory.
    pub(crate) fn holds(&self, path: &[u8]) -> Vec<u8> {
        join(self.as_bytes(), path)
    }
}

impl fmt::Display for Subdirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printable(self.as_bytes()).fmt(f)
    }
}

impl FromStr for Subdirectory {
    type Err = NameError;

    /// Reads a path that [`check_name`] accepts, with or without a slash at its end.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let path = text.strip_suffix('/').unwrap_or(text);
        check_name(path.as_bytes()).map(|()| Self(path.to_owned()))
    }
}

/// The directory part (empty at the top) and the last component of a checked path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}

/// The path of `leaf` in `directory`.
pub(crate) fn join(directory: &[u8], leaf: &[u8]) -> Vec<u8> {
    if directory.is_empty() { leaf.to_vec() } else { [directory, leaf].join(&b'/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_strictly_below_are_taken() {
        let long = vec![b'x'; 256];
        let deep = "ab/".repeat(1_400) + "c";
        let refused: [(&[u8], NameError); 16] = [
            (b"", NameError::Empty),
            (b"/etc/passwd", NameError::EmptyComponent),
            (b"a//b", NameError::EmptyComponent),
            (b"a/", NameError::EmptyComponent),
            (b"/", NameError::EmptyComponent),
            (b".", NameError::Dots),
            (b"..", NameError::Dots),
            (b"a/../../x", NameError::Dots),
            (b"a/.", NameError::Dots),
            (b"a\0b", NameError::Nul),
            (&long, NameError::Long),
            (deep.as_bytes(), NameError::Long),
            (b".byway-partial", NameError::Reserved),
            (b".byway-partial/x", NameError::Reserved),
            (b".byway-trash", NameError::Reserved),
            (b".byway-trash/x", NameError::Reserved),
        ];
        for (name, why) in refused {
            assert_eq!(check_name(name), Err(why), "{}", Printable(name));
        }
        for name in [&b"a"[..], b"a/b", b"...", b"..a", b"\xff\xfe", b"a/.byway-partial", b" ", b"-rf", b"\n"]
        {
            assert_eq!(check_name(name), Ok(()), "{}", Printable(name));
        }
    }

    #[test]
    fn a_subdirectory_is_strictly_below() {
        for (text, path) in [("2026", "2026"), ("2026/", "2026"), ("a/b c/", "a/b c")] {
            let read: Subdirectory = text.parse().unwrap();
            assert_eq!(read.as_bytes(), path.as_bytes());
        }
        for text in ["", "/", "//", "/a", "a//", "..", "../a", "a/../..", ".", ".byway-partial/x", "a\0"] {
            assert!(text.parse::<Subdirectory>().is_err(), "{text}");
        }
        assert_eq!("a/b".parse::<Subdirectory>().unwrap().holds(b"c"), b"a/b/c");
    }

    #[test]
    fn split_and_join_are_inverse() {
        for path in [&b"a"[..], b"a/b", b"a/b/c"] {
            let (directory, leaf) = split(path);
            assert_eq!(join(directory, leaf), path);
        }
    }
}
