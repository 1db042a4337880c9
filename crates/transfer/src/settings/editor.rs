//! Edits of a file that people write too: what an edit does not touch keeps every byte.

use super::document::{Document, Key};
use super::peer_name::PeerName;
use super::schema::{PEER_TABLE, TICKET_KEY};
use std::ops::Range;

/// Whether a name is that of the peer, or of a key below it.
fn is_of(path: &[&str], name: &PeerName) -> bool {
    matches!(path, [PEER_TABLE, peer, ..] if *peer == name.as_str())
}

/// Adds a peer at the end of a text.
pub(super) fn with_peer(text: &str, name: &PeerName, (key, value): (&str, &str)) -> String {
    let mut edited = text.to_owned();
    if !edited.is_empty() {
        edited += if edited.ends_with('\n') { "\n" } else { "\n\n" };
    }
    edited + &format!("[{PEER_TABLE}.{}]\n{key} = \"{value}\"\n", quoted(name))
}

/// The text with another ticket for a peer.
pub(super) fn with_new_ticket(text: &str, document: &Document, name: &PeerName, ticket: &str) -> String {
    let is_table = |path: &[Key]| matches!(path, [above, peer] if above.name == PEER_TABLE && peer.name == name.as_str());
    let is_ticket = |path: &[&str]| matches!(path, [PEER_TABLE, peer, TICKET_KEY] if *peer == name.as_str());
    let mut edited = text.to_owned();
    if let Some(entry) = document.entries.iter().find(|entry| is_ticket(&document.name_of(entry))) {
        edited.replace_range(entry.value_span.clone(), &format!("\"{ticket}\""));
    } else if let Some(header) = document.headers.iter().find(|header| is_table(&header.path)) {
        let end = header.span.end;
        let line_end = if text.get(..end).is_some_and(|before| before.ends_with('\n')) { "" } else { "\n" };
        edited.insert_str(end, &format!("{line_end}{TICKET_KEY} = \"{ticket}\"\n"));
    } else {
        // A peer with a key alone, in a form that leaves no place for more.
        edited = with_peer(text, name, (TICKET_KEY, ticket));
    }
    edited
}

/// The text with a peer under another name.
pub(super) fn with_new_name(text: &str, document: &Document, old: &PeerName, new: &PeerName) -> String {
    let headers = document.headers.iter().map(|header| (0, header.path.as_slice()));
    let entries = document.entries.iter().map(|entry| {
        let table = entry.header.and_then(|at| document.headers.get(at));
        (table.map_or(0, |header| header.path.len()), entry.key.as_slice())
    });
    let is_old = |(above, path): (usize, &[Key])| {
        // The second part of the whole name, if it stands here.
        let part = path.get(1_usize.checked_sub(above)?)?;
        (part.name == old.as_str()).then(|| part.span.clone())
    };
    let of_peers = headers.chain(entries).zip(whole_names(document));
    let spans = of_peers.filter(|(_, whole)| is_of(whole, old)).filter_map(|(piece, _)| is_old(piece));
    let mut spans: Vec<Range<usize>> = spans.collect();
    spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.start));
    spans.into_iter().fold(text.to_owned(), |mut edited, span| {
        edited.replace_range(span, &quoted(new));
        edited
    })
}

/// Removes a peer from a text, and the blank line before the next entry. Comments stay.
pub(super) fn without_peer(text: &str, document: &Document, name: &PeerName) -> String {
    let headers = document.headers.iter().map(|header| header.span.clone());
    let spans = headers.chain(document.entries.iter().map(|entry| entry.span.clone()));
    let of_peer = spans.zip(whole_names(document)).filter(|(_, whole)| is_of(whole, name));
    let mut spans: Vec<Range<usize>> = of_peer.map(|(span, _)| span).collect();
    spans.sort_unstable_by_key(|span| std::cmp::Reverse(span.start));
    let mut edited = text.to_owned();
    let first = spans.last().map_or(0, |span| span.start);
    for span in spans {
        edited.replace_range(span, "");
    }
    let (before, after) = edited.split_at_checked(first).unwrap_or((&edited, ""));
    let blank = |line: &str| line.trim().is_empty();
    let follows = after.split_inclusive('\n').next().filter(|line| blank(line)).map_or(0, str::len);
    let precedes = before.split_inclusive('\n').next_back().filter(|line| blank(line)).map_or(0, str::len);
    if follows > 0 && (precedes > 0 || before.is_empty()) {
        edited.replace_range(first..first + follows, "");
    } else if after.is_empty() && precedes > 0 {
        edited.truncate(first - precedes);
    }
    edited
}

/// The whole names of all headers, and then of all entries.
fn whole_names(document: &Document) -> impl Iterator<Item = Vec<&str>> {
    let headers = document.headers.iter();
    let headers = headers.map(|header| header.path.iter().map(|key| key.name.as_str()).collect());
    headers.chain(document.entries.iter().map(|entry| document.name_of(entry)))
}

/// A name as a part of a table's name: in quotes if it has a dot.
fn quoted(name: &PeerName) -> String {
    if name.as_str().contains('.') { format!("\"{name}\"") } else { name.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\nprogress = true # always\n\n# in the cellar\n[peer.nas]   # old\n\
                        ticket = \"a\"\n# not yet\n\n[peer.\"of.fice\"]\nticket='b'\n[peer]\nlab.ticket = \"c\"\n";

    fn name(text: &str) -> PeerName {
        text.parse().unwrap()
    }

    fn edited(edit: impl Fn(&Document) -> String) -> String {
        let text = edit(&Document::read(TEXT).unwrap());
        Document::read(&text).unwrap();
        text
    }

    #[test]
    fn a_peer_is_added_at_the_end() {
        let nas = "[peer.nas]\nticket = \"t\"\n";
        for (text, expected) in [
            ("", nas.to_owned()),
            ("# mine", format!("# mine\n\n{nas}")),
            ("a = 1\n", format!("a = 1\n\n{nas}")),
        ] {
            assert_eq!(with_peer(text, &name("nas"), (TICKET_KEY, "t")), expected);
        }
        assert!(with_peer("", &name("a.b"), (TICKET_KEY, "t")).starts_with("[peer.\"a.b\"]\n"));
    }

    #[test]
    fn a_new_ticket_changes_the_ticket_alone() {
        for (peer, before, after) in [
            ("nas", "ticket = \"a\"", "ticket = \"t\""),
            ("of.fice", "ticket='b'", "ticket=\"t\""),
            ("lab", "lab.ticket = \"c\"", "lab.ticket = \"t\""),
        ] {
            let text = edited(|document| with_new_ticket(TEXT, document, &name(peer), "t"));
            assert_eq!(text, TEXT.replace(before, after));
        }
        for (text, expected) in [
            ("[peer.nas]", "[peer.nas]\nticket = \"t\"\n"),
            ("[peer.nas] # x\n\n[send]\n", "[peer.nas] # x\nticket = \"t\"\n\n[send]\n"),
            ("[peer.nas]\nticket = [\n  'a', # b\n] # c\n", "[peer.nas]\nticket = \"t\" # c\n"),
        ] {
            let document = Document::read(text).unwrap();
            assert_eq!(with_new_ticket(text, &document, &name("nas"), "t"), expected);
        }
    }

    #[test]
    fn a_new_name_changes_the_name_alone() {
        for (old, new, before, after) in [
            ("nas", "home", "[peer.nas]", "[peer.home]"),
            ("nas", "ho.me", "[peer.nas]", "[peer.\"ho.me\"]"),
            ("of.fice", "office", "[peer.\"of.fice\"]", "[peer.office]"),
            ("lab", "x", "lab.ticket", "x.ticket"),
        ] {
            let text = edited(|document| with_new_name(TEXT, document, &name(old), &name(new)));
            assert_eq!(text, TEXT.replace(before, after));
        }
    }

    #[test]
    fn what_is_removed_is_the_peer_and_no_comment() {
        let without = |peer: &str| edited(|document| without_peer(TEXT, document, &name(peer)));
        assert_eq!(without("nas"), TEXT.replace("[peer.nas]   # old\nticket = \"a\"\n", ""));
        assert_eq!(without("of.fice"), TEXT.replace("[peer.\"of.fice\"]\nticket='b'\n", ""));
        assert_eq!(without("lab"), TEXT.replace("lab.ticket = \"c\"\n", ""));
        for text in ["", "# mine\n", "a = 1\n\n[peer.x]\nticket = 't'\n"] {
            let added = with_peer(text, &name("nas"), (TICKET_KEY, "t"));
            let document = Document::read(&added).unwrap();
            assert_eq!(without_peer(&added, &document, &name("nas")), text, "as it was before");
        }
    }
}
