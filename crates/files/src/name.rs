//! Names from another host: which are taken, and how they are shown.

use std::fmt;
use thiserror::Error;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// The longest path in a manifest, in bytes (Linux `PATH_MAX` less its NUL). Also bounds a link's
/// target.
pub const MAX_PATH: usize = 4_095;
/// The longest component of a path, in bytes (Linux `NAME_MAX`).
pub const MAX_COMPONENT: usize = 255;
/// The directory below the sink in which contents grow until they are verified. No tree may hold
/// this name at its top.
pub const PARTIAL_DIRECTORY: &str = ".byway-partial";

/// Why a name was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// No bytes at all.
    #[error("the name is empty")]
    Empty,
    /// Over [`MAX_PATH`], or a component over [`MAX_COMPONENT`].
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
    /// [`PARTIAL_DIRECTORY`] at the top.
    #[error("the name is reserved for unfinished files")]
    Reserved,
}

/// Whether `path` is a relative path that names something strictly below the directory it starts
/// from, without any component that a kernel would interpret.
pub fn check_name(path: &[u8]) -> Result<(), NameError> {
    if path.is_empty() {
        return Err(NameError::Empty);
    }
    if path.len() > MAX_PATH {
        return Err(NameError::Long);
    }
    if path.contains(&0) {
        return Err(NameError::Nul);
    }
    for (index, component) in path.split(|byte| *byte == b'/').enumerate() {
        match component {
            b"" => return Err(NameError::EmptyComponent),
            b"." | b".." => return Err(NameError::Dots),
            _ if component.len() > MAX_COMPONENT => return Err(NameError::Long),
            _ if index == 0 && component == PARTIAL_DIRECTORY.as_bytes() => return Err(NameError::Reserved),
            _ => {}
        }
    }
    Ok(())
}

/// The directory part (empty at the top) and the last component of a checked path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&[], path),
    }
}

/// `directory` and `leaf` as one path.
pub(crate) fn join(directory: &[u8], leaf: &[u8]) -> Vec<u8> {
    if directory.is_empty() { leaf.to_vec() } else { [directory, leaf].join(&b'/') }
}

/// Prints bytes safely on one line of a terminal. Control characters, invisible characters (a name
/// could look like another) and bytes that are not UTF-8 appear as escapes.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a [u8]);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for character in chunk.valid().chars() {
                if is_unsafe(character) {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    write!(f, "{character}")?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Whether a character drives a terminal, reorders the text around it, or cannot be seen.
fn is_unsafe(character: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    matches!(character.general_category(), Control | Format | LineSeparator | ParagraphSeparator)
        // Letters and marks by category, of which nothing is drawn.
        || matches!(character, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_strictly_below_are_taken() {
        let long = vec![b'x'; 256];
        let deep = "ab/".repeat(1_400) + "c";
        let refused: [(&[u8], NameError); 14] = [
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
    fn a_name_cannot_drive_a_terminal() {
        assert_eq!(Printable(b"a\x1b[2Jb\xff\n").to_string(), "a\\u{1b}[2Jb\\xff\\n");
        assert_eq!(Printable("übel".as_bytes()).to_string(), "übel");
    }

    #[test]
    fn a_name_cannot_look_like_another() {
        // These are bidirectional controls, joiners, marks without a width, tags, and separators of
        // lines.
        for hidden in "\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{3164}\u{feff}\u{fffb}\u{e0041}".chars() {
            let shown = Printable(format!("a{hidden}b").as_bytes()).to_string();
            assert_eq!(shown, format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
        // What people name files with, accents apart from their letters included.
        for plain in ["übel", "e\u{301}t\u{e9}", "写真 １", "עברית", "🎉\u{fe0f}", "a\u{a0}b"] {
            assert_eq!(Printable(plain.as_bytes()).to_string(), plain);
        }
    }

    #[test]
    fn split_and_join_are_inverse() {
        for path in [&b"a"[..], b"a/b", b"a/b/c"] {
            let (directory, leaf) = split(path);
            assert_eq!(join(directory, leaf), path);
        }
    }
}
