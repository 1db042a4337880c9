//! A hundred `byway source` processes send records to one sink over twenty relays, on loopback. The
//! test measures the memory of sources and sink, and the processor time of the sink.

use crate::common::bench::BYWAY;
use crate::common::machine::{Measured, PATIENCE, measures, wait_for};
use crate::common::{Place, Running};
use libtest_mimic::Trial;
use std::fs;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SOURCES: usize = 100;
const RELAYS: usize = 20;
/// Bytes of records per second and source. Two cores carry no more than .9 of 150 KB/s in a debug
/// build.
const DEMAND: u64 = if cfg!(debug_assertions) { 75_000 } else { 150_000 };
/// The most bytes of memory (PSS) that all sources and the sink may have together. A debug build
/// takes more: it has three times as many relocations, and a page that the loader relocates is
/// private.
const MEMORY: u64 = if cfg!(debug_assertions) { 600_000_000 } else { 200_000_000 };
/// Of a core, for the sink.
const CORE: f64 = 0.5;
/// A machine on which less of the demand is carried is too small to say what the sink needs.
const CARRIED: f64 = 0.9;
const SPAN: Duration = Duration::from_secs(10);

pub fn tests() -> Vec<Trial> {
    vec![measures("live_crowd::a_hundred_sources_take_little", None, crowd)]
}

/// A process that ends with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes of the proportional set size (PSS, proc(5)): private pages, and a share of the shared
/// pages.
fn memory(id: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// Processor time so far, in seconds.
fn processor(id: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// A source whose input gives records of 100 bytes without end.
fn source(place: &Place, name: &str, ticket: &str, relays: &[(Running, String)]) -> Started {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let demand = DEMAND.to_string();
    let mut command = Command::new(BYWAY);
    command.args(["source", "--name", name, "--demand", &demand, "--to", ticket]);
    command.args(relays.iter().flat_map(|(_, word)| ["--relay", word.as_str()]));
    command.env("BYWAY_STATE_DIR", place.path(name)).stdin(reader);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Started(command.spawn().unwrap());
    std::thread::spawn(move || {
        let records = [vec![b'x'; 99], b"\n".to_vec()].concat().repeat(40);
        while writer.write_all(&records).is_ok() {}
    });
    started
}

fn crowd() -> Measured {
    let place = Place::new();
    let relays: Vec<(Running, String)> =
        (0..RELAYS).map(|number| relay(&place, &format!("relay{number}"))).collect();
    let out = place.path("out").display().to_string();
    let mut sink = Running::start(place.command("sink", &["sink", &out, "--listen", "127.0.0.1:0"]));
    let ticket = sink.line();
    let id = u32::try_from(sink.id())?;
    let names: Vec<String> = (0..SOURCES).map(|number| format!("source{number}")).collect();
    let sources: Vec<Started> = names.iter().map(|name| source(&place, name, &ticket, &relays)).collect();
    let written = || {
        let length = |name: &String| fs::metadata(place.path("out").join(name)).map_or(0, |file| file.len());
        names.iter().map(length).sum::<u64>()
    };
    let all = DEMAND * SOURCES as u64;
    assert!(wait_for(PATIENCE, || (written() >= 10 * all).then_some(())).is_some(), "{} bytes", written());
    let (before, used, at) = (written(), processor(id), Instant::now());
    std::thread::sleep(SPAN);
    let seconds = at.elapsed().as_secs_f64();
    let carried = (written() - before) as f64 / seconds / all as f64;
    let core = (processor(id) - used) / seconds;
    let of_sources: u64 = sources.iter().map(|source| memory(source.0.id())).sum();
    let of_sink = memory(id);
    let of_relays: u64 = relays.iter().map(|relay| memory(relay.0.id() as u32)).sum();
    eprintln!(
        "{SOURCES} sources over {RELAYS} relays: {carried:.2} of the demand; memory (PSS) of sources {:.1} MB, of the sink {:.1} MB, \
         of relays {:.1} MB; the sink has {core:.2} of a core",
        of_sources as f64 / 1e6,
        of_sink as f64 / 1e6,
        of_relays as f64 / 1e6,
    );
    drop(sources);
    assert!(of_sources + of_sink <= MEMORY, "{} bytes", of_sources + of_sink);
    if carried < CARRIED {
        return Ok(None);
    }
    assert!(core <= CORE, "{core:.2} of a core");
    Ok(Some(()))
}

fn relay(place: &Place, host: &str) -> (Running, String) {
    let arguments = ["relay", "--listen", "127.0.0.1:0", "--allow-destination", "127.0.0.0/8"];
    let mut relay = Running::start(place.command(host, &arguments));
    let word = relay.line();
    (relay, word)
}
