//! What signals do to programs that run: who stops by which, and with which code.

use super::common::machine::{PATIENCE, wait_for};
use super::common::{Place, Running};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A command that begins with `words`, and goes on with this one.
fn behind(words: &[&str], command: &Command) -> Command {
    let mut wrapped = Command::new(words[0]);
    wrapped.args(&words[1..]).arg(command.get_program()).args(command.get_args()).env_clear();
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.current_dir(command.get_current_dir().unwrap());
    wrapped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wrapped
}

/// As from a terminal, although these tests themselves may have been started to outlive one.
fn on_a_terminal(command: &Command) -> Running {
    Running::start(behind(&["/usr/bin/env", "--default-signal=HUP"], command))
}

/// A transfer that takes minutes, with its first bytes on their way: the receiver, and a sender
/// that tells events.
fn slow(place: &Place) -> (Running, Running) {
    byway_files::generate(&place.path("tree"), 1, 8_000_000).unwrap();
    let mut receiver = on_a_terminal(&place.command("receiver", &["recv", "in", "--listen", "127.0.0.1:0"]));
    let ticket = receiver.line();
    let arguments = ["send", "tree", &ticket, "--bwlimit", "100K", "--json"];
    let mut sender = on_a_terminal(&place.command("sender", &arguments));
    while sender.event("progress")["bytes"] == 0 {}
    (receiver, sender)
}

/// How often the threads of a process have gone to sleep.
fn sleeps(process: &Running) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let of = |status: String| -> u64 {
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        count.trim().parse().unwrap()
    };
    tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")).map_or(0, of)).sum()
}

#[test]
fn who_stands_by_sleeps_until_something_happens() {
    let place = Place::new();
    let (receiver, ticket) = place.recv(&["in", "--allow-forward", "localhost:7"]);
    let (relay, _) = place.relay(&[]);
    let arguments = ["forward", "--json", "0:localhost:7", "--to", &ticket];
    let mut forward = Running::start(place.command("sender", &arguments));
    forward.event("connected");
    for process in [&receiver, &relay, &forward] {
        let rests = wait_for(PATIENCE, || {
            let before = sleeps(process);
            std::thread::sleep(Duration::from_secs(2));
            // Ten looks a second by a program that then wakes its event loop are 40.
            (sleeps(process) - before <= 8).then_some(())
        });
        assert!(rests.is_some());
    }
    for process in [forward, relay, receiver] {
        process.signal("TERM");
        let ended = process.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}

#[test]
fn a_terminal_that_is_closed_stops_what_ran_on_it() {
    let place = Place::new();
    let (receiver, sender) = slow(&place);
    sender.signal("HUP");
    // The kernel sends one and the shell another.
    sender.signal("HUP");
    let sent = sender.end();
    sent.failed(129, "to go on: byway send tree");
    assert_eq!(sent.result()["exit"], 129);
    receiver.signal("HUP");
    let received = receiver.end();
    assert_eq!(received.code, Some(129), "{}", received.stderr);
    assert!(received.stderr.contains("stopped; to go on, with the same ticket"), "{}", received.stderr);
    let mut relay = on_a_terminal(&place.command("relay", &["relay", "--listen", "127.0.0.1:0"]));
    relay.line();
    relay.signal("HUP");
    assert_eq!(relay.end().code, Some(129));
}

#[test]
fn what_was_started_to_outlive_its_terminal_does() {
    let place = Place::new();
    let plain = place.command("receiver", &["recv", "in", "--listen", "127.0.0.1:0"]);
    let mut receiver = Running::start(behind(&["/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"], &plain));
    let ticket = receiver.line();
    receiver.signal("HUP");
    std::fs::write(place.path("file"), "still there").unwrap();
    place.run("sender", &["send", "file", &ticket]).succeeded();
    receiver.signal("TERM");
    receiver.end().succeeded();
}

#[test]
fn a_service_that_is_stopped_has_not_failed_and_a_job_has() {
    let place = Place::new();
    let (receiver, sender) = slow(&place);
    // What had arrived is kept, and the service goes on when it is started again.
    receiver.signal("TERM");
    receiver.end().succeeded();
    drop(sender);
    let mut relay = Running::start(place.command("relay", &["relay", "--listen", "127.0.0.1:0", "--json"]));
    relay.event("ready");
    relay.signal("TERM");
    assert_eq!(relay.event("result")["exit"], 0);
    relay.end().succeeded();
    let (receiver, _) = place.recv(&["other", "--once"]);
    receiver.signal("TERM");
    assert_eq!(receiver.end().code, Some(143), "its one transfer has not come");
    let place = Place::new();
    let (receiver, sender) = slow(&place);
    sender.signal("TERM");
    sender.end().failed(143, "to go on: byway send tree");
    drop(receiver);
}
