//! Texts of other hosts, safe to show on a terminal.

use core::fmt;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

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

/// Whether a character controls a terminal, reorders the text around it, or is invisible.
fn is_unsafe(character: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    matches!(character.general_category(), Control | Format | LineSeparator | ParagraphSeparator)
        // Letters, marks and signs by category, of which nothing is drawn.
        || matches!(character, '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
        || matches!(character, '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}')
        // Never drawn, whether they stand for something yet or not (`Default_Ignorable_Code_Point`
        // of Unicode), but for selectors that fonts and emoji need.
        || matches!(character, '\u{2065}' | '\u{fff0}'..='\u{fff8}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn a_name_cannot_drive_a_terminal() {
        assert_eq!(Printable(b"a\x1b[2Jb\xff\n").to_string(), "a\\u{1b}[2Jb\\xff\\n");
        assert_eq!(Printable("übel".as_bytes()).to_string(), "übel");
    }

    /// A C1 control alone begins a sequence on 8-bit terminals. Overlong forms, surrogates and
    /// values past the last character are not UTF-8.
    #[test]
    fn no_byte_of_a_name_begins_a_sequence() {
        for control in ('\0'..'\u{20}').chain('\u{7f}'..'\u{a0}') {
            let shown = Printable(alloc::format!("a{control}31mb").as_bytes()).to_string();
            assert!(!shown.contains(char::is_control) && shown.starts_with("a\\"), "{shown}");
        }
        for broken in
            [&b"\x9b31m"[..], b"\xc0\x9b", b"\xe0\x80\x9b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc2"]
        {
            let shown = Printable(broken).to_string();
            assert!(shown.is_ascii() && shown.starts_with("\\x"), "{shown}");
        }
    }

    /// Characters without a glyph, to most of which terminals give no width.
    #[test]
    fn what_no_category_tells_is_spelled_out_too() {
        for hidden in "\u{2065}\u{2800}\u{17b4}\u{17b5}\u{180b}\u{180f}\u{fff0}\u{fff8}\u{e0000}\u{e0100}\u{e01ef}\u{e0fff}\u{1d173}".chars() {
            let shown = Printable(alloc::format!("a{hidden}b").as_bytes()).to_string();
            assert_eq!(shown, alloc::format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
    }

    #[test]
    fn a_name_cannot_look_like_another() {
        // These are bidirectional controls, joiners, marks without a width, tags, and separators of
        // lines.
        for hidden in "\u{ad}\u{61c}\u{180e}\u{200b}\u{200d}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{206f}\u{3164}\u{feff}\u{fffb}\u{e0041}".chars() {
            let shown = Printable(alloc::format!("a{hidden}b").as_bytes()).to_string();
            assert_eq!(shown, alloc::format!("a\\u{{{:x}}}b", u32::from(hidden)));
        }
        // What people name files with, accents apart from their letters included.
        for plain in ["übel", "e\u{301}t\u{e9}", "写真 １", "עברית", "🎉\u{fe0f}", "a\u{a0}b"] {
            assert_eq!(Printable(plain.as_bytes()).to_string(), plain);
        }
    }
}
