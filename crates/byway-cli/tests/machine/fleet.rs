//! Two registries, forty relays and a transfer, each on its own host. Relays and a registry are
//! killed; the bytes must still arrive intact. Relays must forward nothing without a valid grant.
//!
//! ```text
//!            8 Mbit/s               direct: 1.6 Mbit/s
//!   sender ───────────── hub ────────────────────────── receiver
//!                         ├── relay 0  …  relay 39
//!                         ├── registry 0, registry 1 ┄ data base
//!                         └── alice, eve, victim
//! ```
//!
//! Needs root and `ip`, `tc`, `nft`.

mod strangers;

#[path = "../../../registry-store/tests/it/server.rs"]
mod server;

use crate::common::machine::{Missing, PATIENCE, missing, must, slow, test, wait_for};
use crate::common::spaces::Spaces;
use crate::common::ticket_in;
use crate::namespaces::PRIVATE;
use crate::process::Process;
use byway_registry::message::RelayList;
use byway_registry::word::RegistryWord;
use byway_wire::relay::Minted;
use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use server::Server;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const RELAYS: usize = 40;
const SENDER: &str = "10.77.200.1";
const RECEIVER: &str = "10.77.201.1";
const REGISTRIES: [(&str, &str); 2] = [("g0", "10.77.202.1"), ("g1", "10.77.203.1")];
const ALICE: &str = "10.77.204.1";
const EVE: &str = "10.77.205.1";
const VICTIM: &str = "10.77.206.1";
/// What is longer is data, or a packet of somebody who says that he may send: greetings, notices
/// and heartbeats are shorter.
const LONG: usize = 500;
/// Bytes that a sender has beyond those that arrived.
const AHEAD: u64 = 2 << 20;

/// Relays that stay as they are, and carry what is counted.
const STEADY: Range<usize> = 0..8;
/// Relays that swallow all that they forward, and those that swallow what is long.
const SWALLOW: Range<usize> = 8..12;
const SWALLOW_LONG: Range<usize> = 12..16;
/// Relays that are killed, and come back.
const DIE: Range<usize> = 16..20;
/// Relays that join amid the transfer, and those that join while nobody can enrol them.
const JOIN: Range<usize> = 20..30;
const JOIN_LATER: Range<usize> = 30..40;

pub fn tests() -> Vec<Trial> {
    let programs = Spaces::possible(&["tc -V", "nft -v"]);
    let lacks = missing(programs, "it needs root and the programs ip, tc and nft");
    let no_server: Missing = missing(Server::is_possible(), "it needs PostgreSQL");
    vec![
        test("fleet::a_transfer_outlives_the_registry_and_its_relays", lacks, on_a_file),
        slow(
            "fleet::a_transfer_outlives_registries_and_their_data_base",
            lacks.or(no_server),
            on_a_data_base,
        ),
    ]
}

fn host(relay: usize) -> String {
    format!("r{relay}")
}

fn address(relay: usize) -> String {
    format!("10.77.{relay}.1")
}

fn on_a_file() -> Result<(), Failed> {
    outlives(&Fleet::new("f", 1, None), None)
}

fn on_a_data_base() -> Result<(), Failed> {
    let server = Server::start().ok_or("no server")?;
    outlives(&Fleet::new("p", 2, Some(server.data_base("fleet"))), Some(&server))
}

/// The hosts, and what they keep.
struct Fleet {
    spaces: Spaces,
    directory: tempfile::TempDir,
    registries: &'static [(&'static str, &'static str)],
    /// Where registries keep everything, if not in a file.
    store: Option<String>,
}

impl Fleet {
    fn new(tag: &str, registries: usize, store: Option<String>) -> Self {
        let relays: Vec<(String, String)> = (0..RELAYS).map(|relay| (host(relay), address(relay))).collect();
        let relays = relays.iter().map(|(name, address)| (name.as_str(), address.as_str()));
        let others = [("snd", SENDER), ("rcv", RECEIVER), ("alice", ALICE), ("eve", EVE), ("victim", VICTIM)];
        let registries = &REGISTRIES[..registries];
        let hosts: Vec<_> = others.into_iter().chain(registries.iter().copied()).chain(relays).collect();
        let spaces = Spaces::star(tag, &hosts);
        let fleet = Self { spaces, directory: tempfile::tempdir().unwrap(), registries, store };
        fleet.shape();
        fleet.count();
        fleet
    }

    fn shape(&self) {
        let tbf = ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "8mbit", "burst", "6kb"];
        self.spaces.says("snd", &[tbf.as_slice(), &["limit", "100kb"]].concat());
        self.nft(
            "hub",
            &format!(
                "add table ip d; add chain ip d f {{ type filter hook forward priority 0; }}; \
                 add rule ip d f ip saddr {SENDER} ip daddr {RECEIVER} limit rate over 200 kbytes/second burst 20 kbytes drop"
            ),
        );
    }

    /// Installs counters of UDP datagrams longer than `LONG` bytes: what each relay receives, what
    /// each relay sends, and what the victim receives.
    fn count(&self) {
        let registries = self.registries.iter().map(|(_, address)| *address);
        let known: Vec<&str> = [SENDER, RECEIVER, ALICE, VICTIM].into_iter().chain(registries).collect();
        let chain = |name| format!("add chain ip c {name} {{ type filter hook prerouting priority 0; }}");
        let counts = |name: &str, chain: &str, rule: &str| {
            format!(
                "add counter ip c {name}; add rule ip c {chain} {rule} udp length > {LONG} counter name {name}"
            )
        };
        // Counted at `hub`: the relay's kernel would count two short datagrams of a batch (GSO) as
        // a long one.
        let mut hub = vec!["add table ip c".to_owned()];
        for relay in 0..RELAYS {
            let name = host(relay);
            let got = counts("got", "got", &format!("ip saddr {{ {SENDER}, {RECEIVER}, {ALICE} }}"));
            self.nft(&name, &format!("add table ip c; {}; {got}", chain("got")));
            // A chain for each relay's interface, so that no packet meets the rules of all.
            let from = |which: &str| format!("ip daddr {which}");
            hub.push(format!("add chain ip c {name}"));
            hub.push(counts(
                &format!("{name}-sent"),
                &name,
                &from(&format!("{{ {SENDER}, {RECEIVER}, {VICTIM} }}")),
            ));
            hub.push(counts(
                &format!("{name}-strange"),
                &name,
                &from(&format!("!= {{ {} }}", known.join(", "))),
            ));
        }
        hub.push(chain("from"));
        let each = (0..RELAYS).map(|relay| format!("\"to-{0}\" : jump {0}", host(relay)));
        hub.push(format!("add rule ip c from iifname vmap {{ {} }}", each.collect::<Vec<_>>().join(", ")));
        self.nft("hub", &hub.join("; "));
        self.nft(
            "victim",
            &format!(
                "add table netdev c; add counter netdev c got; \
                 add chain netdev c in {{ type filter hook ingress device eth0 priority 0; }}; \
                 add rule netdev c in udp length > {LONG} counter name got"
            ),
        );
        // Packets travel one by one, so that each is counted with its headers.
        for end in (0..RELAYS).map(host).chain(["snd", "rcv"].map(str::to_owned)) {
            self.spaces.says(&end, &["ip", "link", "set", "dev", "eth0", "gso_max_segs", "1"]);
        }
    }

    fn nft(&self, host: &str, rules: &str) {
        self.spaces.says(host, &["nft", rules]);
    }

    /// Packets and bytes of a relay that were counted: `got`, `sent` or `strange`.
    fn of_relay(&self, relay: usize, name: &str) -> (u64, u64) {
        match name {
            "got" => self.counted(&host(relay), "ip", name),
            _ => self.counted("hub", "ip", &format!("{}-{name}", host(relay))),
        }
    }

    /// Packets and bytes that were counted.
    fn counted(&self, host: &str, family: &str, name: &str) -> (u64, u64) {
        let told = self.spaces.says(host, &["nft", "list", "counter", family, "c", name]);
        let number = |before: &str| -> u64 {
            let (_, rest) = told.split_once(before).expect("a counter");
            rest.split_whitespace().next().unwrap().parse().unwrap()
        };
        (number("packets "), number("bytes "))
    }

    /// byway on a host, as somebody.
    fn byway(&self, host: &str, name: &str, arguments: &[&str]) -> Command {
        let mut command = self.spaces.on(host);
        command.arg(env!("CARGO_BIN_EXE_byway")).args(arguments);
        command.env("BYWAY_STATE_DIR", self.directory.path().join(name));
        if let Some(store) = self.store.as_ref().filter(|_| name == "registry") {
            command.env("BYWAY_STORE", store);
        }
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn start(&self, mut command: Command) -> Process {
        let said = tempfile::Builder::new().tempfile_in(self.directory.path()).unwrap().keep().unwrap();
        Process { child: command.stdout(said.0).spawn().unwrap(), said: said.1 }
    }

    fn registry(&self, (name, address): (&str, &str)) -> Process {
        let mut arguments = vec!["registry", "--json", "--listen", address];
        self.registries.iter().for_each(|(_, address)| arguments.extend(["--advertise", address]));
        self.start(self.byway(name, "registry", &arguments))
    }

    fn relay(&self, relay: usize, join: &str) -> Process {
        let (listen, operator) = (format!("{}:4748", address(relay)), format!("operator {relay}"));
        let own = ["relay", "--json", "--listen", &listen, "--registry", join, "--operator", &operator];
        self.start(self.byway(&host(relay), &host(relay), &[&own[..], &PRIVATE].concat()))
    }

    /// What an operator of the registry does.
    fn operate(&self, arguments: &[&str]) -> Value {
        let arguments = [&["registry", "--json"], arguments].concat();
        let told = must(&mut self.byway(self.registries[0].0, "registry", &arguments));
        serde_json::from_str(told.lines().last().unwrap()).unwrap()
    }

    /// A client's word.
    fn word(&self, arguments: &[&str]) -> RegistryWord {
        let done = self.operate(&[&["word"], arguments].concat());
        done["word"].as_str().unwrap().parse().unwrap()
    }

    /// What a registry offers, as soon as it does.
    #[track_caller]
    fn list(&self, word: &RegistryWord, is_enough: impl Fn(&RelayList) -> bool + Sync) -> RelayList {
        let identity = byway_transfer::Identity::generate().unwrap();
        let last = Mutex::new(String::new());
        let list = self.spaces.at("alice", || {
            wait_for(PATIENCE, || {
                let answer = byway_transfer::registry::ask(&identity, word).unwrap();
                *last.lock().unwrap() = match &answer {
                    Ok(list) => format!("epoch {:?}, relays {:?}", epoch(list), named(list)),
                    Err(error) => error.to_string(),
                };
                answer.ok().filter(|list| is_enough(list))
            })
        });
        list.unwrap_or_else(|| panic!("no list that has whom it should; the last: {}", last.lock().unwrap()))
    }

    /// Relays that do not forward any more, as the kernel has it.
    fn swallow(&self, relays: Range<usize>, which: &str) {
        for relay in relays {
            let rules = "add table ip s; add chain ip s out { type filter hook output priority 0; }";
            self.nft(&host(relay), &format!("{rules}; add rule ip s out {which} drop"));
        }
    }
}

/// Which relays a list names.
fn named(list: &RelayList) -> BTreeSet<usize> {
    let number = |operator: &str| operator.strip_prefix("operator ").unwrap().parse().unwrap();
    list.relays.iter().map(|listed| number(listed.operator.as_str())).collect()
}

fn has(list: &RelayList, mut relays: impl Iterator<Item = usize>) -> bool {
    let named = named(list);
    relays.all(|relay| named.contains(&relay))
}

/// Whether the relay words of `list` (permissions to use relays) have an odd epoch number. To
/// revoke words, a registry raises its epoch number by one. So odd and even tell old words from
/// new. `None` if `list` is empty, or has both.
fn epoch(list: &RelayList) -> Option<bool> {
    let mut odd = list.relays.iter().map(|listed| Minted::of(listed.word.grant().id).unwrap().odd);
    let first = odd.next()?;
    odd.all(|it| it == first).then_some(first)
}

/// Bytes that arrived, by the last word of a sender.
fn progress(said: &Path) -> u64 {
    let text = fs::read_to_string(said).unwrap();
    let events = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut progress = events.into_iter().filter(|event| event["event"] == "progress");
    progress.next().map_or(0, |event| event["bytes"].as_u64().unwrap())
}

/// Writes bytes to a sender's standard input until `stop` is set. Returns their number and hash. At
/// most about `AHEAD` bytes have been written but not yet received, so the transfer ends soon after
/// `stop`.
fn feed(mut sender: ChildStdin, said: PathBuf, stop: Arc<AtomicBool>) -> JoinHandle<(u64, blake3::Hash)> {
    std::thread::spawn(move || {
        let (mut hasher, mut given, mut piece) = (blake3::Hasher::new(), 0_u64, vec![0; 64 << 10]);
        while !stop.load(Ordering::Acquire) {
            if given > progress(&said) + AHEAD {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            blake3::Hasher::new().update(&given.to_be_bytes()).finalize_xof().fill(&mut piece);
            sender.write_all(&piece).unwrap();
            hasher.update(&piece);
            given += piece.len() as u64;
        }
        (given, hasher.finalize())
    })
}

/// What a receiver gives.
fn taken(mut receiver: impl std::io::Read + Send + 'static) -> JoinHandle<(u64, blake3::Hash)> {
    std::thread::spawn(move || {
        let (mut hasher, mut got, mut piece) = (blake3::Hasher::new(), 0_u64, vec![0; 64 << 10]);
        loop {
            let length = receiver.read(&mut piece).unwrap();
            if length == 0 {
                return (got, hasher.finalize());
            }
            hasher.update(&piece[..length]);
            got += length as u64;
        }
    })
}

/// A transfer of a stream that goes on until it is told to end.
struct Transfer {
    sender: Process,
    receiver: Process,
    stop: Arc<AtomicBool>,
    given: JoinHandle<(u64, blake3::Hash)>,
    got: JoinHandle<(u64, blake3::Hash)>,
}

impl Transfer {
    fn begin(fleet: &Fleet, word: &str) -> Self {
        let errors = fleet.directory.path().join("ticket");
        let listen = format!("{RECEIVER}:0");
        let mut command = fleet.byway("rcv", "receiver", &["recv", "-", "--once", "--listen", &listen]);
        command.stderr(File::create(&errors).unwrap()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let got = taken(child.stdout.take().unwrap());
        let receiver = Process { child, said: errors.clone() };
        let ticket = ticket_in(&errors);
        let send = ["send", "--json", "-", &ticket, "--registry", word, "--priority", "normal"];
        let mut command = fleet.byway("snd", "sender", &send);
        command.stdin(Stdio::piped());
        let mut sender = fleet.start(command);
        let stop = Arc::new(AtomicBool::new(false));
        let given = feed(sender.child.stdin.take().unwrap(), sender.said.clone(), Arc::clone(&stop));
        Self { sender, receiver, stop, given, got }
    }

    /// Waits until it has gone on by so many bytes.
    #[track_caller]
    fn goes_on(&self, bytes: u64) {
        let aim = progress(&self.sender.said) + bytes;
        let done = wait_for(PATIENCE, || (progress(&self.sender.said) >= aim).then_some(()));
        assert!(done.is_some(), "it stands still at {}", progress(&self.sender.said));
    }

    /// Ends it; the sender's result.
    fn end(mut self) -> Value {
        self.stop.store(true, Ordering::Release);
        let result = self.sender.event("result");
        assert_eq!(self.sender.code(), Some(0), "{result}");
        assert_eq!(self.receiver.code(), Some(0));
        let (given, got) = (self.given.join().unwrap(), self.got.join().unwrap());
        assert_eq!(given, got, "what came out is what went in");
        result
    }
}

fn outlives(fleet: &Fleet, server: Option<&Server>) -> Result<(), Failed> {
    let mut registries: Vec<Process> = fleet.registries.iter().map(|it| fleet.registry(*it)).collect();
    let ready = registries.iter_mut().map(|registry| registry.event("ready")).last().unwrap();
    let [join, ask] = ["join", "use"].map(|word| ready[word].as_str().unwrap().to_owned());
    let [alice, carol] =
        [fleet.word(&["--for", "alice"]), fleet.word(&["--for", "carol", "--quota", "512K"])];
    let mut relays: Vec<Process> = (0..JOIN.start).map(|relay| fleet.relay(relay, &join)).collect();
    relays.iter_mut().for_each(|relay| drop(relay.event("enrolled")));
    fleet.swallow(SWALLOW, "udp length > 3 @th,64,8 { 0x64, 0x65 }");
    let transfer = Transfer::begin(fleet, &ask);
    let ask: RegistryWord = ask.parse()?;
    transfer.goes_on(1 << 20);
    if registries.len() == 1 {
        // They answer and beat. The sender complains of them, and the registry finds that they
        // forward nothing.
        fleet
            .list(&ask, |list| has(list, STEADY) && named(list).iter().all(|relay| !SWALLOW.contains(relay)));
    }

    // Who holds a good grant is served; a copy, a forgery and what is used up are not.
    let victim = strangers::Victim::new(fleet);
    let good = fleet.list(&alice, |list| has(list, STEADY));
    let owed = strangers::with_grants(fleet, &victim, &good);
    let owed = owed + strangers::over_quota(fleet, &victim, &fleet.list(&carol, |_| true));
    strangers::without_grants(fleet, &victim, &good);

    // Relays come, swallow and die.
    relays.extend(JOIN.map(|relay| fleet.relay(relay, &join)));
    fleet.swallow(SWALLOW_LONG, &format!("ip daddr {RECEIVER} udp length > {LONG}"));
    relays[DIE].iter_mut().for_each(Process::kill);
    relays[JOIN].iter_mut().for_each(|relay| drop(relay.event("enrolled")));
    transfer.goes_on(1 << 20);

    // The registry dies; of two the first, and then the data base.
    registries[0].kill();
    server.iter().for_each(|server| server.kill());
    transfer.goes_on(1 << 20);
    relays.extend(JOIN_LATER.map(|relay| fleet.relay(relay, &join)));
    if registries.len() > 1 {
        fleet.list(&alice, |list| has(list, STEADY.chain(JOIN)));
    }
    transfer.goes_on(1 << 20);
    server.iter().for_each(|server| server.start_again());
    registries[0] = fleet.registry(fleet.registries[0]);
    assert_eq!(registries[0].event("ready")["use"], ready["use"]);
    for relay in DIE {
        relays[relay] = fleet.relay(relay, &join);
    }
    let joined =
        relays.iter_mut().enumerate().filter(|(relay, _)| JOIN_LATER.chain(DIE).any(|it| it == *relay));
    joined.for_each(|(_, relay)| drop(relay.event("enrolled")));

    // Nothing that was enrolled is lost. A word ends: who is listed then knows of it.
    fleet.operate(&["revoke", "alice"]);
    let all = || STEADY.chain(DIE).chain(JOIN).chain(JOIN_LATER);
    fleet.list(&ask, |list| epoch(list) == epoch(&good).map(|odd| !odd) && has(list, all()));
    let bob = fleet.word(&["--for", "bob", "--expires", "20s"]);
    let expired = fleet.list(&bob, |_| true);
    strangers::without_grants(fleet, &victim, &good);
    strangers::too_late(fleet, &victim, &good);
    strangers::too_late(fleet, &victim, &expired);
    // The sender has grants of the new epoch.
    let carried = || (0..RELAYS).map(|relay| fleet.of_relay(relay, "sent").1).sum::<u64>();
    let before = carried();
    assert!(wait_for(PATIENCE, || (carried() > before + (1 << 20)).then_some(())).is_some());
    let result = transfer.end();
    assert_eq!(result["verified"], true, "{result}");

    assert_eq!(
        victim.counted(fleet),
        owed,
        "the victim got what was sent to it with good grants, and nothing else"
    );
    for relay in 0..RELAYS {
        let (got, sent) = (fleet.of_relay(relay, "got"), fleet.of_relay(relay, "sent"));
        assert!(sent.1 <= got.1, "relay {relay} sent {sent:?}, and got {got:?}");
        assert_eq!(fleet.of_relay(relay, "strange").0, 0, "relay {relay}");
    }
    println!(
        "relays carried {} bytes, {owed} packets of them for alice and carol; {}",
        carried(),
        result["relays_verdict"]
    );
    Ok(())
}
