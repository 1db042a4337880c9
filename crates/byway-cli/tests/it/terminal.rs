//! What a person sees on a terminal of 60 columns: a pseudo-terminal, whose output a terminal of
//! the tests draws.

use super::common::{Place, Running};
use crate::common::machine::PATIENCE;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};

const COLUMNS: u16 = 60;

/// A terminal that a program writes its standard error to.
struct Terminal {
    controller: File,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

/// A test that fails leaves no program behind.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    fn start(command: Command) -> Self {
        Self::of(command, false)
    }

    /// `is_both`: standard output goes there, too, and standard input comes from there.
    fn of(mut command: Command, is_both: bool) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&controller, size).unwrap();
        let end = File::options().read(true).write(true).open(name).unwrap();
        if is_both {
            command.stdout(end.try_clone().unwrap()).stdin(end.try_clone().unwrap());
        }
        let child = command.stderr(end).spawn().unwrap();
        // It holds the program's end too: with it open, the output would have no end.
        drop(command);
        let controller = File::from(controller);
        let mut reader = controller.try_clone().unwrap();
        let (give, output) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // The end of a pseudo-terminal is an error.
            while let Ok(read @ 1..) = reader.read(&mut piece) {
                if give.send(piece[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { controller, child, output, screen: vt100::Parser::new(24, COLUMNS, 0) }
    }

    fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Draws what comes until `seen` says so.
    fn until(&mut self, seen: impl Fn(&str) -> bool) {
        while !seen(&self.contents()) {
            let Ok(piece) = self.output.recv_timeout(PATIENCE) else { panic!("{}", self.contents()) };
            self.screen.process(&piece);
        }
    }

    /// Draws all that comes to the end, and returns the exit code with what stays.
    fn end(mut self) -> (Option<i32>, String) {
        while let Ok(piece) = self.output.recv_timeout(PATIENCE) {
            self.screen.process(&piece);
        }
        let status = self.child.try_wait().unwrap();
        if status.is_none() {
            self.child.kill().unwrap();
        }
        (self.child.wait().unwrap().code(), self.contents())
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }
}

/// A sender of a tree that takes minutes, on a terminal of this kind, and its receiver.
fn sender(place: &Place, kind: Option<&str>) -> (Running, Terminal) {
    byway_files::generate(&place.path("tree"), 1, 8_000_000).unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    let mut command = place.command("sender", &["send", "tree", &ticket, "--bwlimit", "100K"]);
    command.stdout(std::process::Stdio::null());
    command.envs(kind.map(|kind| ("TERM", kind)));
    (receiver, Terminal::start(command))
}

#[test]
fn lines_fit_and_nothing_of_them_stays_when_a_key_stops_it() {
    let place = Place::new();
    let (_receiver, mut terminal) = sender(&place, Some("xterm"));
    let mut before = String::new();
    for _ in 0..5 {
        terminal
            .until(|seen| seen.contains("KiB of 7.63 MiB") && seen.contains("direct ") && *seen != before);
        before = terminal.contents();
        assert_eq!(before.lines().count(), 2, "{before}");
    }
    // The key, whose echo comes from the terminal; the signal, which comes to whoever the terminal
    // controls.
    terminal.controller.write_all(b"\x03").unwrap();
    terminal.until(|seen| seen.contains("^C"));
    terminal.signal("-INT");
    let (code, seen) = terminal.end();
    assert_eq!(code, Some(130));
    assert!(seen.starts_with("byway: stopped with") && seen.contains("to go on:"), "{seen}");
    assert!(!seen.contains('━') && !seen.contains("direct") && !seen.contains("^C"), "{seen}");
}

#[test]
fn terminals_that_cannot_draw_get_lines_and_every_word() {
    for kind in [Some("dumb"), None] {
        let place = Place::new();
        let (_receiver, mut terminal) = sender(&place, kind);
        terminal.until(|seen| seen.contains("of 7.63 MiB ("));
        terminal.signal("-INT");
        let (code, seen) = terminal.end();
        assert_eq!(code, Some(130));
        assert!(seen.contains("byway: stopped with") && seen.contains("to go on:"), "{kind:?}: {seen}");
        assert!(!seen.contains('━'), "{seen}");
    }
}

#[test]
fn a_screen_of_what_runs_is_drawn_anew_and_fits() {
    let place = Place::new();
    byway_files::generate(&place.path("tree"), 1, 8_000_000).unwrap();
    let (_receiver, ticket) = place.recv(&["in"]);
    let sender = Running::start(place.command("sender", &["send", "tree", &ticket, "--bwlimit", "100K"]));
    let mut command = place.command("sender", &["status", "--watch"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::of(command, true);
    let mut before = String::new();
    for _ in 0..3 {
        terminal
            .until(|seen| seen.contains("send, for ") && seen.contains("KiB of 7.63 MiB") && *seen != before);
        before = terminal.contents();
        assert!(before.lines().count() <= 8, "one line for each, its transfer and its path: {before}");
    }
    drop(sender);
    terminal.until(|seen| !seen.contains("send, for "));
    terminal.signal("-INT");
    assert_eq!(terminal.end().0, Some(130));
}

/// A million runs take longer than an hour, which is known after five seconds.
/// Starts a plan that takes hours at a terminal, and waits for the question.
fn asked(place: &Place) -> Terminal {
    let plan = "title = \"t\"\nduration = \"100 s\"\n\
                [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"50 packets\"\n\
                [[transfer]]\nname = \"bulk\"\nfrom = \"S\"\nto = \"D\"\n";
    std::fs::write(place.path("long.toml"), plan).unwrap();
    let run = place.command("here", &["lab", "run", "long.toml", "--seeds", "1000000", "--jobs", "1"]);
    let mut terminal = Terminal::of(run, true);
    terminal.until(|screen| screen.contains("go on? [Y/n]"));
    assert!(terminal.contents().contains("`byway lab tasks` spreads"), "{}", terminal.contents());
    terminal
}

#[test]
fn a_person_is_asked_before_a_plan_that_takes_hours() {
    let place = Place::new();
    let mut terminal = asked(&place);
    terminal.controller.write_all(b"n\n").unwrap();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("stopped after"), "{screen}");
}

#[test]
fn who_is_asked_may_stop_the_program_instead() {
    let place = Place::new();
    let terminal = asked(&place);
    terminal.signal("-INT");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("stopped after"), "{screen}");
}
