use super::*;
use crate::exit::Exit;
use crate::output::{Origin, Outcome, Transferred};
use byway_transfer::PauseReason;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// A terminal to look at.
#[derive(Clone)]
struct Screen(Arc<Mutex<vt100::Parser>>);

impl Screen {
    fn new(rows: u16, columns: u16) -> Self {
        Self(Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0))))
    }

    fn contents(&self) -> String {
        self.0.lock().unwrap().screen().contents()
    }

    /// Writes text at the cursor, as the terminal itself does for a shell's prompt.
    fn echo(&self, text: &str) {
        self.0.lock().unwrap().process(text.as_bytes());
    }

    fn resize(&self, rows: u16, columns: u16) {
        self.0.lock().unwrap().screen_mut().set_size(rows, columns);
    }

    fn bars(&self) -> Bars {
        let screen = self.clone();
        let size = move || {
            let (rows, columns) = screen.0.lock().unwrap().screen().size();
            (usize::from(columns), usize::from(rows))
        };
        Bars::new(Painter::new(Box::new(self.clone()), Box::new(size)), false)
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().process(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn path(path: u32, name: &str, bytes: u64) -> PathProgress {
    PathProgress {
        path,
        name: name.into(),
        carrier: "udp".into(),
        state: "active".into(),
        bytes,
        rate_bps: 9e6,
        rtt_ms: Some(23.0),
        ..Default::default()
    }
}

fn progress() -> Progress {
    Progress {
        seconds: 2.0,
        bytes: 12 << 20,
        total: Some(48 << 20),
        rate_bps: 27e6,
        paths: vec![path(0, "direct", 3), path(1, "relay-1", 1)],
        ..Default::default()
    }
}

fn warning() -> Event {
    Event::Warning { message: "relay-2 does not answer".into() }
}

#[test]
fn bars_show_the_transfer_and_each_path_and_go_away() {
    let screen = Screen::new(12, 100);
    let mut bars = screen.bars();
    let mut progress = progress();
    bars.show(&Event::Progress(progress.clone()));
    progress.paths[1].pause = Some(PauseReason::Yielding);
    bars.show(&Event::Progress(progress.clone()));
    let drawn = screen.contents();
    assert!(drawn.contains("25% 12.0 MiB of 48.0 MiB  27.0 Mbit/s  11.2 s left"), "{drawn}");
    assert!(drawn.contains("direct  ━━━━━━━━━") && drawn.contains("75%"), "{drawn}");
    assert!(drawn.contains("yielding to others"), "{drawn}");
    bars.show(&warning());
    assert!(screen.contents().starts_with("warning: relay-2 does not answer\n━"), "{}", screen.contents());
    progress.arrivals = vec![path(0, "direct", 5)];
    bars.show(&Event::Progress(progress.clone()));
    assert!(screen.contents().contains("back: direct ━"), "{}", screen.contents());
    progress.arrivals.clear();
    progress.paths.remove(0);
    bars.show(&Event::Progress(progress));
    assert!(!screen.contents().contains("direct"), "{}", screen.contents());
    drop(bars);
    assert_eq!(screen.contents().trim_end(), "warning: relay-2 does not answer");
}

#[test]
fn lines_fit_terminals_of_every_width() {
    for columns in 24..=130 {
        let screen = Screen::new(12, columns);
        screen.echo("$ byway send\r\n");
        let mut bars = screen.bars();
        let mut progress = progress();
        progress.paths[0].pause = Some(PauseReason::Yielding);
        progress.paths[1].name = "relay 192.0.2.7:4748 from 写真".into();
        progress.pause = Some(PauseReason::ReceiverBandwidthLimit);
        for _ in 0..3 {
            bars.show(&Event::Progress(progress.clone()));
        }
        let drawn = screen.contents();
        assert_eq!(drawn.lines().count(), 4, "{columns}: {drawn}");
        assert!(drawn.lines().all(|line| breadth(line.trim_end()) <= usize::from(columns) - 4), "{drawn}");
        if columns >= 60 {
            let told = "25% 12.0 MiB of 48.0 MiB  27.0 Mbit/s  11.2 s left";
            assert!(drawn.contains(told), "{columns}: {drawn}");
            assert!(drawn.contains("9.00 Mbit/s  23 ms"), "{columns}: {drawn}");
        }
        drop(bars);
        assert_eq!(screen.contents().trim_end(), "$ byway send", "{columns}");
    }
}

#[test]
fn what_a_key_echoes_leaves_nothing_of_a_bar_behind() {
    for columns in [40, 60, 80, 200] {
        let screen = Screen::new(12, columns);
        screen.echo("$ byway send\r\n");
        let mut bars = screen.bars();
        bars.show(&Event::Progress(progress()));
        screen.echo("^C");
        bars.stop();
        bars.show(&Event::Progress(progress()));
        bars.line("byway: stopped");
        drop(bars);
        assert_eq!(screen.contents().trim_end(), "$ byway send\nbyway: stopped");
    }
}

#[test]
fn a_terminal_that_becomes_wider_or_lower_is_followed() {
    let screen = Screen::new(12, 60);
    let mut bars = screen.bars();
    bars.show(&Event::Progress(progress()));
    for (rows, columns) in [(12, 100), (3, 100), (2, 80)] {
        screen.resize(rows, columns);
        bars.show(&Event::Progress(progress()));
        let drawn = screen.contents();
        assert!(drawn.starts_with("━━━") && drawn.contains("25% 12.0 MiB"), "{drawn}");
    }
}

#[test]
fn each_transfer_of_a_receiver_has_its_own() {
    let screen = Screen::new(12, 100);
    let mut bars = screen.bars();
    let origin = |transfer, name: &str| Origin {
        transfer,
        from: format!("byway-key-{}", "7".repeat(60)),
        name: Some(name.into()),
    };
    for (transfer, name) in [(1, "photos"), (2, "mu\u{202e}sic"), (1, "photos")] {
        let origin = Some(origin(transfer, name));
        bars.show(&Event::Progress(Progress { origin, ..progress() }));
    }
    let drawn = screen.contents();
    assert_eq!(drawn.matches("25% 12.0 MiB of 48.0 MiB").count(), 2, "{drawn}");
    assert!(drawn.starts_with("photos from byway-key-77777777…\n"), "{drawn}");
    assert!(drawn.contains("\nmu\\u{202e}sic from byway-key-77777777…\n"), "{drawn}");
    let done = Transferred { origin: Some(origin(1, "photos")), verified: true, ..Default::default() };
    bars.show(&Event::result("recv", Exit::Ok, Outcome::Transfer(Box::new(done))));
    let drawn = screen.contents();
    assert!(drawn.starts_with("photos from byway-key-77777777…: 0 B in 0 entries"), "{drawn}");
    assert_eq!(drawn.matches("48.0 MiB").count(), 1, "{drawn}");
}
