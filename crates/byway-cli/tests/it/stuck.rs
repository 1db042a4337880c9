//! `--json` with a reader that does not read.

use super::common::{Place, Running, assert_same};
use rustix::io::ioctl_fionbio;
use std::io::{PipeReader, Read as _, Write as _};
use std::process::Command;

/// A pipe that is full already, which the command writes its events to; what is in it, and its
/// reader.
fn full(command: &mut Command) -> (usize, PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    let mut filled = 0;
    while let Ok(written) = writer.write(&[b'\n'; 4096]) {
        filled += written;
    }
    ioctl_fionbio(&writer, false).unwrap();
    command.stdout(writer);
    (filled, reader)
}

fn events(filled: usize, reader: &mut PipeReader) -> Vec<serde_json::Value> {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text[filled..].lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_transfer_whose_events_nobody_reads_is_carried_through_and_its_result_waits() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 600_000).unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let mut command = place.command("sender", &["send", "tree", &ticket, "--json"]);
    let (filled, mut reader) = full(&mut command);
    let sender = Running::start(command);
    receiver.end().succeeded();
    assert_same(&place.path("tree"), &place.path("in/tree"));
    // Whoever reads late reads everything.
    let read = events(filled, &mut reader);
    sender.end().succeeded();
    let last = read.last().unwrap();
    assert_eq!(
        (&last["event"], &last["exit"], &last["bytes"]),
        (&"result".into(), &0.into(), &600_000.into())
    );
}

#[test]
fn the_first_signal_ends_whoever_waits_for_a_reader() {
    let place = Place::new();
    std::fs::write(place.path("file"), "contents").unwrap();
    let (receiver, ticket) = place.recv(&["in", "--once"]);
    let mut command = place.command("sender", &["send", "file", &ticket, "--json"]);
    let (_, _reader) = full(&mut command);
    let sender = Running::start(command);
    receiver.end().succeeded();
    sender.interrupt();
    // It was too late to stop anything.
    sender.end().succeeded();
}
