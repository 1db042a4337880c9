//! Ten end hosts send to one another and relay for others, beside thirty relays. End hosts are
//! killed, change their address, or use up their quota. Received files must equal sent files.
//!
//! ```text
//!   e0, e2, e4, e6, e8 ─── 4 Mbit/s ──┐        from a sender straight to its receiver: 1.6 Mbit/s
//!   e1, e3, e5, e7, e9 ─── 8 Mbit/s ──┤
//!                                    hub ── registry, alice, victim, impostor
//!   r0 … r4 ─ 64 kbit/s, r5 … r29 ────┘
//! ```
//!
//! Needs root and `ip`, `tc`, `nft`.

mod stranger;

use crate::common::machine::{PATIENCE, missing, slow, wait_for};
use crate::common::spaces::Spaces;
use crate::process::Process;
use byway_registry::message::RelayList;
use byway_registry::word::RegistryWord;
use byway_wire::seeded_random::mixed;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

const HOSTS: usize = 10;
const RELAYS: usize = 30;
/// Relays that say that they are idle, on lines that carry next to nothing.
const LIARS: usize = 5;
const REGISTRY: &str = "10.78.202.1";
const ALICE: &str = "10.78.204.1";
const VICTIM: &str = "10.78.206.1";
const IMPOSTOR: &str = "10.78.207.1";
/// Where the host goes that roams.
const ROAMED: &str = "10.78.7.2";
const ALL: [&str; 2] = ["--allow-destination", "10.78.0.0/16"];
/// The host whose quota a stranger uses up, and quotas in MiB.
const POOR: usize = 9;
const QUOTA_OF_THE_POOR: u64 = 3;
const QUOTA: u64 = 200;
/// Bytes of a file that is sent.
const FILE: usize = 2 << 20;
/// What is sent for strangers, by its first byte, beside greetings and notices.
const FORWARDED: &str = "@th,64,8 { 0x64, 0x65 }";

pub fn tests() -> Vec<Trial> {
    let programs = Spaces::possible(&["tc -V", "nft -v"]);
    let lacks = missing(programs, "it needs root and the programs ip, tc and nft");
    vec![slow(
        "hosts::ten_end_hosts_relay_for_each_other_beside_thirty_relays",
        lacks,
        ten_end_hosts_relay_for_each_other_beside_thirty_relays,
    )]
}

fn host(number: usize) -> String {
    format!("e{number}")
}

fn address(number: usize) -> String {
    format!("10.78.{number}.1")
}

fn relay(number: usize) -> (String, String) {
    (format!("r{number}"), format!("10.78.{}.1", 50 + number))
}

fn quota(number: usize) -> u64 {
    if number == POOR { QUOTA_OF_THE_POOR } else { QUOTA }
}

/// The hosts, and what they keep.
struct Hosts {
    spaces: Spaces,
    directory: tempfile::TempDir,
}

impl Hosts {
    fn new() -> Self {
        let names: Vec<(String, String)> =
            (0..HOSTS).map(|it| (host(it), address(it))).chain((0..RELAYS).map(relay)).collect();
        let others = [("g", REGISTRY), ("alice", ALICE), ("victim", VICTIM), ("impostor", IMPOSTOR)];
        let all = others.into_iter().chain(names.iter().map(|(name, here)| (name.as_str(), here.as_str())));
        let spaces = Spaces::star("n", &all.collect::<Vec<_>>());
        let hosts = Self { spaces, directory: tempfile::tempdir().unwrap() };
        for number in 0..HOSTS {
            hosts.shape(&host(number), if number % 2 == 0 { "4mbit" } else { "8mbit" });
            // Packets travel one by one, so that each is counted with its headers.
            hosts.spaces.says(&host(number), &["ip", "link", "set", "dev", "eth0", "gso_max_segs", "1"]);
        }
        (0..LIARS).for_each(|it| hosts.shape(&relay(it).0, "64kbit"));
        let mut rules = String::from(
            "add table ip c; add chain ip c f { type filter hook forward priority 0; }; \
             add chain ip c p { type filter hook prerouting priority 0; };",
        );
        for (number, (name, _)) in names.iter().enumerate() {
            rules += &format!(
                "add counter ip c {name}; \
                 add rule ip c p iifname to-{name} ip daddr != {REGISTRY} udp sport 4748 {FORWARDED} counter name {name};"
            );
            if number < HOSTS && number % 2 == 0 {
                rules += &format!(
                    "add rule ip c f iifname to-{name} oifname to-{} udp sport != 4748 udp dport != 4748 \
                     limit rate over 200 kbytes/second burst 20 kbytes drop;",
                    host(number + 1)
                );
            }
        }
        hosts.spaces.says("hub", &["nft", &rules]);
        hosts
    }

    fn shape(&self, host: &str, rate: &str) {
        let tbf = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "6kb"];
        self.spaces.says(host, &[tbf.as_slice(), &["limit", "100kb"]].concat());
    }

    /// Bytes that a host sent for others, as they came to the hub.
    fn relayed(&self, host: &str) -> u64 {
        let told = self.spaces.says("hub", &["nft", "list", "counter", "ip", "c", host]);
        let (_, rest) = told.split_once("bytes ").expect("a counter");
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn byway(&self, host: &str, arguments: &[&str]) -> Command {
        let mut command = self.spaces.on(host);
        command.arg(env!("CARGO_BIN_EXE_byway")).args(arguments).arg("--json");
        command.env("BYWAY_STATE_DIR", self.directory.path().join(host));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn start(&self, host: &str, arguments: &[&str]) -> Process {
        let said = tempfile::Builder::new().tempfile_in(self.directory.path()).unwrap().keep().unwrap();
        let child = self.byway(host, arguments).stdout(said.0).spawn().unwrap();
        Process { child, said: said.1 }
    }

    fn into(&self, number: usize) -> PathBuf {
        self.directory.path().join(format!("in-{number}"))
    }

    /// A receiver that relays for others.
    fn receiver(&self, number: usize, join: &str) -> Process {
        let into = self.into(number);
        fs::create_dir_all(&into).unwrap();
        let quota = format!("{}M/day", quota(number));
        let lends = ["--also-relay", &quota, "--lend", "1M", "--registry", join];
        let receive = ["recv", into.to_str().unwrap()];
        self.start(&host(number), &[&receive[..], &lends, &ALL].concat())
    }

    /// What the registry offers to alice, as soon as it does.
    #[track_caller]
    fn list(&self, word: &RegistryWord, is_enough: impl Fn(&RelayList) -> bool + Sync) -> RelayList {
        let identity = byway_transfer::Identity::generate().unwrap();
        let list = self.spaces.at("alice", || {
            wait_for(PATIENCE, || {
                let list = byway_transfer::registry::ask(&identity, word).unwrap().ok()?;
                is_enough(&list).then_some(list)
            })
        });
        list.expect("a list that has whom it should")
    }
}

/// Whether a list names an address.
fn names(list: &RelayList, address: &str) -> bool {
    word_at(list, address).is_some()
}

/// The word of the relay at an address.
fn word_at(list: &RelayList, address: &str) -> Option<byway_wire::relay::Word> {
    let at = SocketAddr::new(address.parse().unwrap(), 4748);
    let listed = list.relays.iter().find(|listed| listed.word.relays().contains(&at))?;
    Some(listed.word.clone())
}

/// A host that sends one file after the other to its neighbour, and relays for others meanwhile.
struct Pair {
    stop: Arc<AtomicBool>,
    /// The process that sends.
    sender: Arc<Mutex<Option<Process>>>,
    /// Files that arrived as they were sent.
    done: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Pair {
    fn begin(hosts: &Arc<Hosts>, from: usize, receiver: &Process, words: &str) -> Self {
        let ticket = receiver.event("ready")["ticket"].as_str().unwrap().to_owned();
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, done) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        let (told, process, count) = (Arc::clone(&stop), Arc::clone(&sender), Arc::clone(&done));
        let (hosts, words) = (Arc::clone(hosts), words.to_owned());
        let run = move || {
            for number in 0.. {
                if told.load(Ordering::Acquire) {
                    return;
                }
                send(&hosts, from, &format!("file-{from}-{number}"), &ticket, &words, &process);
                count.fetch_add(1, Ordering::AcqRel);
            }
        };
        Self { stop, sender, done, thread: Some(std::thread::spawn(run)) }
    }

    /// Waits until another file has arrived that was begun from now on.
    #[track_caller]
    fn goes_on(&self) {
        let before = self.done.load(Ordering::Acquire);
        let done = wait_for(PATIENCE, || (self.done.load(Ordering::Acquire) >= before + 2).then_some(()));
        assert!(done.is_some(), "a transfer stands still after {before} files");
    }

    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
        self.done.load(Ordering::Acquire)
    }
}

impl Drop for Pair {
    /// If the test failed.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // Its sender is gone, so it ends.
            self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
            let _ = thread.join();
        }
    }
}

/// Sends a file, and looks at what arrived.
fn send(hosts: &Hosts, from: usize, name: &str, ticket: &str, words: &str, process: &Mutex<Option<Process>>) {
    let file = hosts.directory.path().join(name);
    let seed = mixed(name.bytes().fold(from as u64, |sum, byte| sum * 31 + u64::from(byte)));
    let mut bytes = vec![0; FILE];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    fs::write(&file, &bytes).unwrap();
    let quota = format!("{}M/day", quota(from));
    let lends = ["--also-relay", &quota, "--lend", "1M", "--registry", words, "--priority", "normal"];
    let send = [&["send", file.to_str().unwrap(), ticket], &lends[..], &ALL].concat();
    *process.lock().unwrap() = Some(hosts.start(&host(from), &send));
    let ended = wait_for(PATIENCE, || match process.lock().unwrap().as_mut() {
        Some(process) => process.child.try_wait().unwrap(),
        None => panic!("the test failed"),
    });
    let result = process.lock().unwrap().take().unwrap().event("result");
    assert!(ended.is_some_and(|it| it.success()) && result["verified"] == true, "{result}");
    let arrived = hosts.into(from + 1).join(name);
    assert!(fs::read(&arrived).unwrap() == bytes, "what came out is what went in");
    fs::remove_file(arrived).unwrap();
    fs::remove_file(file).unwrap();
}

/// Says that something is to end when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn ten_end_hosts_relay_for_each_other_beside_thirty_relays() -> Result<(), Failed> {
    let hosts = Arc::new(Hosts::new());
    let registry = hosts.start("g", &["registry", "--listen", REGISTRY, "--advertise", REGISTRY]);
    let ready = registry.event("ready");
    let [join, ask] = ["join", "use"].map(|word| ready[word].as_str().unwrap().to_owned());
    let both = format!("{join},{ask}");
    let word: RegistryWord = ask.parse()?;

    // Nobody else relays yet: hosts without a transfer of their own do.
    let mut receivers: Vec<Process> = (0..HOSTS / 2).map(|it| hosts.receiver(2 * it + 1, &join)).collect();
    receivers.iter().for_each(|receiver| drop(receiver.event("enrolled")));
    let first = hosts.list(&word, |list| (0..HOSTS / 2).all(|it| names(list, &address(2 * it + 1))));
    let begin = |from: usize, receivers: &[Process]| Pair::begin(&hosts, from, &receivers[from / 2], &both);
    let mut pairs: Vec<Pair> = [0, 2].into_iter().map(|from| begin(from, &receivers)).collect();
    let by_hosts = || (0..HOSTS).map(|it| hosts.relayed(&host(it))).sum::<u64>();
    let lent = wait_for(PATIENCE, || (by_hosts() > 1 << 20).then_some(()));
    assert!(lent.is_some(), "end hosts relayed {} bytes", by_hosts());

    // A host that advertises the address of another host must not be listed, and the other host
    // must receive almost nothing because of it.
    let into = hosts.directory.path().join("impostor-in");
    fs::create_dir(&into).unwrap();
    let lie = ["recv", into.to_str().unwrap(), "--also-relay", "1G/day", "--advertise", VICTIM];
    let impostor = hosts.start("impostor", &[&lie[..], &["--registry", &join], &ALL].concat());
    let is_told = |event: &Value| event["message"].as_str().unwrap().starts_with("this host is not listed");
    let told = wait_for(PATIENCE, || impostor.events("warning").iter().any(is_told).then_some(()));
    assert!(told.is_some(), "{:?}", impostor.events("warning"));

    // Relays come, five of them with lines that carry nothing.
    let relays: Vec<Process> = (0..RELAYS)
        .map(|number| {
            let (name, address) = relay(number);
            let listen = format!("{address}:4748");
            hosts.start(&name, &[&["relay", "--listen", &listen, "--registry", &join], &ALL[..]].concat())
        })
        .collect();
    relays.iter().for_each(|relay| drop(relay.event("enrolled")));
    pairs.extend([4, 6].into_iter().map(|from| begin(from, &receivers)));
    pairs.iter().for_each(Pair::goes_on);

    // A stranger sends through the relay of host number `POOR` until that host's line is full and
    // its quota is used up. Meanwhile transfers between other hosts must continue, and a transfer
    // to `POOR` itself must begin and continue.
    let grant = word_at(&first, &address(POOR)).unwrap();
    let (ends, is_used) = (AtomicBool::new(false), (QUOTA_OF_THE_POOR << 20) * 9 / 10);
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| stranger::fills(&hosts, &grant, || !ends.load(Ordering::Acquire)));
        let ended = Ends(&ends);
        let used = wait_for(PATIENCE, || (hosts.relayed(&host(POOR)) >= is_used).then_some(()));
        if used.is_some() {
            pairs.push(begin(POOR - 1, &receivers));
            pairs.iter().for_each(Pair::goes_on);
        }
        drop(ended);
        stranger.join().unwrap();
        assert!(used.is_some(), "{} bytes relayed", hosts.relayed(&host(POOR)));
    });

    // A receiving host is killed in mid-transfer and restarted. While the host lends nothing, it
    // passes no test of the registry.
    receivers[2].kill();
    receivers[2] = hosts.receiver(5, &join);
    pairs.iter().for_each(Pair::goes_on);

    // Host `e7` has no transfer any more. It moves to another address, and the registry must list
    // that address.
    let mut files = pairs.remove(3).end();
    for change in [["add", &format!("{ROAMED}/24")], ["del", &format!("{}/24", address(7))]] {
        hosts.spaces.says("e7", &["sysctl", "-qw", "net.ipv4.conf.all.promote_secondaries=1"]);
        hosts.spaces.says("e7", &[&["ip", "address"][..], &change, &["dev", "eth0"]].concat());
    }
    hosts.list(&word, |list| names(list, ROAMED) && !names(list, &address(7)));
    // The same process says so.
    assert!(wait_for(PATIENCE, || (receivers[3].events("enrolled").len() > 1).then_some(())).is_some());
    // Then it is killed for good.
    receivers[3].kill();
    hosts.list(&word, |list| !names(list, ROAMED));
    pairs.iter().for_each(Pair::goes_on);

    files += pairs.into_iter().map(Pair::end).sum::<usize>();
    // All transfers have ended. Host 9 (`POOR`) relays at most 3 MiB a day. A sender now uses up
    // the rest of that quota. The registry must then list hosts 1, 3 and 5 as relays, but not host
    // 9.
    let ends = AtomicBool::new(false);
    let last = std::thread::scope(|scope| {
        scope.spawn(|| stranger::fills(&hosts, &grant, || !ends.load(Ordering::Acquire)));
        let _ended = Ends(&ends);
        hosts.list(&word, |list| {
            [1, 3, 5].into_iter().all(|it| names(list, &address(it))) && !names(list, &address(POOR))
        })
    });
    assert!(!names(&last, VICTIM));
    let by_relays: u64 = (0..RELAYS).map(|it| hosts.relayed(&relay(it).0)).sum();
    let each: Vec<u64> = (0..HOSTS).map(|it| hosts.relayed(&host(it))).collect();
    println!("{files} files; end hosts relayed {each:?} bytes, relays {by_relays}");
    for (number, bytes) in each.iter().enumerate() {
        assert!(*bytes <= (quota(number) << 20) * 11 / 10, "host {number}: {bytes}");
    }
    assert!(each[POOR] >= (QUOTA_OF_THE_POOR << 20) * 9 / 10 && by_relays > 1 << 20);
    Ok(())
}
