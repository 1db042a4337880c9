//! What a person and a program read of events, off a terminal.

use byway_cli::exit::Exit;
use byway_cli::output::{
    Event, Origin, Outcome, Output, PathChange, PathProgress, PathTotal, Progress, Ready, Style, Transferred,
};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A place to write to that the test can read.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that has gone.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(style: Style) -> (Output, Sink, Sink) {
    let (stdout, stderr) = (Sink::default(), Sink::default());
    (Output::to(Box::new(stdout.clone()), Box::new(stderr.clone()), style), stdout, stderr)
}

fn progress(seconds: f64) -> Event {
    let direct = PathProgress {
        path: 0,
        name: "direct".into(),
        carrier: "udp".into(),
        state: "active".into(),
        bytes: 7,
        rate_bps: 9.1e6,
        rtt_ms: Some(20.0),
        lost: Some(1),
        pause: None,
        ..PathProgress::default()
    };
    let relay = PathProgress {
        path: 1,
        name: "r1".into(),
        pause: Some(byway_transfer::PauseReason::Yielding),
        ..direct.clone()
    };
    Event::Progress(Progress {
        origin: None,
        seconds,
        bytes: 12 << 20,
        total: Some(48 << 20),
        rate_bps: 27e6,
        pause: None,
        lends: None,
        arrivals: Vec::new(),
        paths: vec![direct, relay],
        ..Progress::default()
    })
}

fn transfer() -> Outcome {
    Outcome::Transfer(Box::new(Transferred {
        bytes: 1 << 20,
        entries: 2,
        seconds: 4.0,
        goodput_bps: 2_097_152.0,
        verified: true,
        paths: vec![PathTotal { route: "direct".into(), carrier: "udp", bytes: 1 << 20, lost: Some(3) }],
        ..Transferred::default()
    }))
}

#[test]
fn events_are_lines_of_versioned_json() {
    let (mut output, stdout, stderr) = open(Style { json: true, ..Style::default() });
    output.emit(&Event::Ready(Ready {
        ticket: Some("byway1-x".into()),
        listen: vec!["[::]:1".into()],
        ..Ready::default()
    }));
    output.emit(&Event::Warning { message: "a \"quoted\" word".into() });
    output.emit(&Event::Path(PathChange {
        path: 1,
        name: "r1".into(),
        state: "choked".into(),
        reason: None,
    }));
    output.emit(&Event::result("send", Exit::Ok, transfer()));
    output.answer("nothing: it is in an event").unwrap();
    output.finish();
    let expected = r#"{"v":1,"event":"ready","ticket":"byway1-x","listen":["[::]:1"]}
{"v":1,"event":"warning","message":"a \"quoted\" word"}
{"v":1,"event":"path","path":1,"name":"r1","state":"choked"}
{"v":1,"event":"result","verb":"send","exit":0,"bytes":1048576,"kept_bytes":0,"entries":2,"seconds":4.0,"goodput_bps":2097152.0,"verified":true,"paths":[{"route":"direct","carrier":"udp","bytes":1048576,"lost":3}]}
"#;
    assert_eq!(stdout.text(), expected);
    assert_eq!(stderr.text(), "");
}

#[test]
fn progress_and_failure_in_json() {
    let line = progress(1.5).to_line();
    let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(parsed["paths"][1]["pause"], "yielding");
    assert_eq!(parsed["paths"][0]["rtt_ms"], 20.0);
    let (mut output, stdout, stderr) = open(Style { json: true, ..Style::default() });
    output.failed("send", Exit::NotAuthorised, "the ticket has expired");
    output.finish();
    assert_eq!(
        stdout.text(),
        "{\"v\":1,\"event\":\"result\",\"verb\":\"send\",\"exit\":6,\"error\":\"the ticket has expired\"}\n"
    );
    assert_eq!(stderr.text(), "byway: the ticket has expired\n");
}

#[test]
fn plain_progress_comes_every_five_seconds_and_starts_anew_with_each_transfer() {
    let (mut output, stdout, stderr) = open(Style::default());
    for seconds in [0.0, 1.0, 4.9, 5.0, 9.0, 0.5] {
        output.emit(&progress(seconds));
    }
    let line = "12.0 MiB of 48.0 MiB (25%), 27.0 Mbit/s, 11.2 s left; direct 9.10 Mbit/s, r1 9.10 Mbit/s (yielding to others)\n";
    assert_eq!(stderr.text(), line.repeat(3));
    assert_eq!(stdout.text(), "");
}

#[test]
fn flags_choose_what_a_person_sees() {
    let seen = |style: Style| {
        let (mut output, _, stderr) = open(style);
        output.emit(&Event::Path(PathChange {
            path: 1,
            name: "r1".into(),
            state: "choked".into(),
            reason: Some("no answer".into()),
        }));
        output.emit(&Event::Warning { message: "w".into() });
        output.say("said");
        stderr.text()
    };
    assert_eq!(seen(Style { quiet: true, ..Style::default() }), "");
    assert_eq!(seen(Style::default()), "warning: w\nsaid\n");
    let verbose = seen(Style { verbose: true, ..Style::default() });
    assert!(verbose.starts_with("path 1 (r1) is choked: no answer\n"), "{verbose}");
}

#[test]
fn answers_leave_standard_output_to_the_data() {
    let (mut output, stdout, stderr) = open(Style { quiet: true, ..Style::default() });
    output.answer("one").unwrap();
    output.stdout_is_data();
    output.answer("two").unwrap();
    assert_eq!((stdout.text().as_str(), stderr.text().as_str()), ("one\n", "two\n"));
}

#[test]
fn a_reader_that_has_gone_ends_an_answer_but_no_transfer() {
    let sink = Sink::default();
    let mut output = Output::to(Box::new(Gone), Box::new(sink.clone()), Style::default());
    assert_eq!(output.answer("x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    let json = Style { json: true, ..Style::default() };
    let mut output = Output::to(Box::new(Gone), Box::new(sink), json);
    output.emit(&progress(0.0));
    output.finish();
    output.emit(&progress(1.0));
    output.finish();
}

#[test]
fn a_peer_cannot_write_to_the_terminal() {
    let (mut output, _, stderr) = open(Style::default());
    output.emit(&Event::Warning { message: "cannot write \u{1b}[2Jé\u{9b}x\r".into() });
    assert_eq!(stderr.text(), "warning: cannot write \\u{1b}[2Jé\\u{9b}x\\r\n");
    let (mut output, _, stderr) = open(Style { verbose: true, ..Style::default() });
    output.emit(&Event::Warning { message: "a\nbyway: all is well, \u{202e}gpj.exe".into() });
    output.emit(&Event::Path(PathChange {
        path: 1,
        name: "r\u{200b}1".into(),
        state: "closed".into(),
        reason: Some("no\nanswer".into()),
    }));
    let expected =
        "warning: a\\nbyway: all is well, \\u{202e}gpj.exe\npath 1 (r\\u{200b}1) is closed: no\\nanswer\n";
    assert_eq!(stderr.text(), expected);
}

#[test]
fn the_result_of_a_transfer_in_words() {
    let (mut output, _, stderr) = open(Style::default());
    output.emit(&Event::result("send", Exit::Ok, transfer()));
    let expected =
        "1.00 MiB in 2 entries, 4.00 s, 2.10 Mbit/s, verified\n  direct: 1.00 MiB, 3 packets lost\n";
    assert_eq!(stderr.text(), expected);
}

#[test]
fn what_is_missing_or_broke_off_is_told_as_it_is() {
    let told = |done: Transferred| {
        let (mut output, _, stderr) = open(Style::default());
        output.emit(&Event::result("recv", Exit::Partial, Outcome::Transfer(Box::new(done))));
        stderr.text()
    };
    let origin = Some(Origin {
        transfer: 3,
        from: format!("byway-key-{}", "x".repeat(60)),
        name: Some("photos\n".into()),
    });
    // One entry that was refused says nothing about the others.
    let partial = Transferred {
        bytes: 90 << 20,
        entries: 19,
        failed: 1,
        seconds: 60.0,
        goodput_bps: 12e6,
        origin: origin.clone(),
        ..Transferred::default()
    };
    assert_eq!(
        told(partial),
        "photos\\n from byway-key-xxxxxxxx…: 90.0 MiB in 19 entries, 1m 00s, 12.0 Mbit/s, verified; 1 entry is missing\n"
    );
    let broken = Transferred {
        entries: 3,
        seconds: 15.0,
        goodput_bps: 16e6,
        arrived: Some(30 << 20),
        total: Some(300 << 20),
        origin,
        ..Transferred::default()
    };
    assert_eq!(
        told(broken),
        "photos\\n from byway-key-xxxxxxxx…: 30.0 MiB of 300 MiB arrived, 15.0 s, 16.0 Mbit/s; it is kept, 3 entries are complete\n"
    );
    let stream = Transferred { bytes: 1 << 20, entries: 1, seconds: 1.0, ..Transferred::default() };
    assert_eq!(told(stream), "1.00 MiB in 1 entry, 1.00 s, 0.00 bit/s, NOT verified\n");
}

#[test]
fn tickets_stay_out_of_logs() {
    let ready =
        Ready { ticket: Some("byway1-x".into()), word: Some("byway-relay-y".into()), ..Ready::default() };
    let shown = format!("{ready:?}");
    assert!(!shown.contains("byway"), "{shown}");
}
