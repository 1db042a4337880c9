//! What every store must do.

use crate::server::Server;
use byway_engine::handshake::PublicKey;
use byway_registry::message::Label;
use byway_registry::store::{
    AuditEntry, Changes, EnrolRefusal, LAST_EPOCH_SECONDS, LastHeartbeat, RelayRow, Store as _, StoreReply,
    StoreRequest, WordRow,
};
use byway_registry::word::WordKind;
use byway_registry_store::operator_store::{Revoked, standard};
use byway_registry_store::sqlite::Sqlite;
use byway_registry_store::{Issue, OperatorStore, StoreError};
use byway_wire::heartbeat::RelayId;
use byway_wire::relay::{QuotaClass, RangeKey, RateClass};
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Opens the store of a directory: twice, it is the same one.
pub type Open<'a> = &'a dyn Fn(&Path) -> Box<dyn OperatorStore>;

const AT: u64 = 1_800_000_000;

fn relay(index: u8, addresses: &[&str], word: u32) -> RelayRow {
    RelayRow {
        relay: RelayId([index; 16]),
        key: PublicKey([index; 32]),
        word,
        range: 9,
        range_key: RangeKey::new([index; 32]),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass(7),
        operator: Label::new("Example"),
        region: Label::new("eu"),
        addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        tcp: false,
        revoked: false,
    }
}

fn issue(kind: WordKind, name: &str) -> Issue {
    Issue { kind, name: name.into(), uses: None, rate: Some(1 << 20), quota: None, expires: None }
}

fn enrol(keeper: &mut dyn OperatorStore, row: &RelayRow) -> Result<(), EnrolRefusal> {
    match keeper.answer(StoreRequest::Enrol { row: row.clone(), at: AT }) {
        StoreReply::Enrolled(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn changes(keeper: &mut dyn OperatorStore, since: u64) -> Changes {
    match keeper.answer(StoreRequest::Changes { since }) {
        StoreReply::Changes(changes) => changes,
        other => panic!("{other:?}"),
    }
}

/// A test, and its name.
type Test = (&'static str, fn(Open<'_>, &Path));

/// All of them.
pub const ALL: [Test; 6] = [
    ("enrolments", enrolments),
    ("words", words),
    ("revocation", revocation),
    ("notes", notes),
    ("epochs", epochs),
    ("two_at_once", two_at_once),
];

fn enrolments(open: Open<'_>, at: &Path) {
    let mut keeper = open(at);
    let join = keeper.issue(&Issue { uses: Some(3), ..issue(WordKind::Join, "three") }, AT).unwrap();
    let any = keeper.issue(&issue(WordKind::Join, "any"), AT).unwrap().number;
    let first = relay(1, &["192.0.2.1:1", "192.0.2.1:2", "[2001:db8::1]:1"], join.number);
    assert_eq!(enrol(&mut *keeper, &first), Ok(()));
    assert_eq!(enrol(&mut *keeper, &first), Ok(()), "again");
    assert_eq!(enrol(&mut *keeper, &relay(2, &["192.0.2.1:3"], join.number)), Ok(()));
    assert_eq!(enrol(&mut *keeper, &relay(3, &["192.0.2.1:4"], join.number)), Err(EnrolRefusal::Crowded));
    assert_eq!(enrol(&mut *keeper, &relay(3, &["192.0.2.3:4"], join.number)), Ok(()));
    assert_eq!(enrol(&mut *keeper, &relay(4, &["192.0.2.4:4"], join.number)), Err(EnrolRefusal::UsedUp));
    assert_eq!(enrol(&mut *keeper, &relay(4, &["192.0.2.4:4"], 99)), Err(EnrolRefusal::Word));
    let thief = RelayRow { key: PublicKey([9; 32]), ..first.clone() };
    assert_eq!(enrol(&mut *keeper, &thief), Err(EnrolRefusal::OtherKey));
    let moved =
        RelayRow { region: Label::new("us"), addresses: vec!["192.0.2.9:1".parse().unwrap()], ..first };
    assert_eq!(enrol(&mut *keeper, &moved), Ok(()));
    assert_eq!(enrol(&mut *keeper, &relay(5, &["192.0.2.1:9"], any)), Ok(()), "it made room");
    drop(keeper);
    let everything = open(at).everything().unwrap();
    assert_eq!(everything.relays.len(), 4);
    assert!(everything.relays.contains(&moved));
    let word = everything.words.iter().find(|word| word.number == join.number).unwrap();
    assert_eq!((word.uses, word.kind), (Some(0), WordKind::Join));
}

fn words(open: Open<'_>, at: &Path) {
    let mut keeper = open(at);
    assert!(keeper.addresses().unwrap().is_empty());
    let addresses = vec!["192.0.2.1:4750".parse().unwrap(), "[2001:db8::1]:4750".parse().unwrap()];
    keeper.set_addresses(&addresses).unwrap();
    keeper.set_addresses(&addresses).unwrap();
    let standard =
        |keeper: &mut dyn OperatorStore| standard(keeper, AT).unwrap().map(|word| (word.number, word.name));
    let first = standard(&mut *keeper);
    let alice = keeper.issue(&Issue { expires: Some(AT + 9), ..issue(WordKind::Use, "alice") }, AT).unwrap();
    let taken = keeper.issue(&issue(WordKind::Use, "alice"), AT);
    assert!(matches!(taken, Err(StoreError::NameTaken(_))), "{taken:?}");
    let secret = *keeper.secret().unwrap();
    drop(keeper);
    let mut keeper = open(at);
    assert_eq!((keeper.addresses().unwrap(), *keeper.secret().unwrap()), (addresses, secret));
    assert_eq!(standard(&mut *keeper), first);
    let expected = WordRow { rate: RateClass::at_most(1 << 20), expires: AT + 9, ..alice };
    assert!(changes(&mut *keeper, 0).words.contains(&expected));
    keeper.check().unwrap();
}

fn revocation(open: Open<'_>, at: &Path) {
    let mut keeper = open(at);
    let join = keeper.issue(&issue(WordKind::Join, "join"), AT).unwrap();
    keeper.issue(&issue(WordKind::Use, "alice"), AT).unwrap();
    enrol(&mut *keeper, &relay(1, &["192.0.2.1:1"], join.number)).unwrap();
    let before = changes(&mut *keeper, 0);
    assert!(matches!(keeper.revoke("alice", AT + 5).unwrap(), Revoked::Word(word) if word.name == "alice"));
    let after = changes(&mut *keeper, before.revision);
    assert_eq!(after.epoch.number, before.epoch.number + 1);
    assert_eq!(after.epoch.last_until, AT + 5, "the last epoch ends at once");
    assert!(after.words.len() == 1 && after.words[0].revoked && after.relays.is_empty());
    assert!(matches!(keeper.revoke("alice", AT), Err(StoreError::NoSuchName(_))));
    assert!(keeper.issue(&issue(WordKind::Use, "alice"), AT).is_ok(), "the name is free");
    let name = RelayId([1; 16]);
    assert_eq!(keeper.revoke(&name.to_string(), AT).unwrap(), Revoked::Relay(name));
    assert!(changes(&mut *keeper, after.revision).relays[0].revoked);
    assert_eq!(enrol(&mut *keeper, &relay(1, &["192.0.2.1:1"], join.number)), Err(EnrolRefusal::OtherKey));
    keeper.revoke("join", AT).unwrap();
    assert_eq!(enrol(&mut *keeper, &relay(2, &["192.0.2.2:1"], join.number)), Err(EnrolRefusal::Word));
    let log: Vec<_> = keeper.log(10).unwrap().into_iter().map(|entry| (entry.what, entry.who)).collect();
    assert_eq!(log[0], ("revoked", "join".into()));
    assert_eq!(log.last().unwrap().0, "issued");
}

fn notes(open: Open<'_>, at: &Path) {
    let mut keeper = open(at);
    let seen = |index: u8, at: u64, counter: u64| LastHeartbeat {
        relay: RelayId([index; 16]),
        at,
        counter,
        load: 5,
    };
    let entry = AuditEntry { at: AT, what: "refused", who: "somebody".into(), detail: "no word".into() };
    let note = |seen| StoreRequest::Note { seen, entries: vec![entry.clone()] };
    assert_eq!(keeper.answer(note(vec![seen(1, AT, 7), seen(2, AT, 8)])), StoreReply::Noted);
    // What another registry wrote later stays.
    assert_eq!(keeper.answer(note(vec![seen(1, AT - 5, 3), seen(2, AT + 1, 9)])), StoreReply::Noted);
    let mut all = changes(&mut *keeper, 0).seen;
    all.sort_by_key(|seen| seen.relay);
    assert_eq!(all, [seen(1, AT, 7), seen(2, AT + 1, 9)]);
    assert_eq!(keeper.log(9).unwrap(), [entry.clone(), entry]);
}

fn epochs(open: Open<'_>, at: &Path) {
    let mut keeper = open(at);
    let first = changes(&mut *keeper, 0).epoch;
    assert_eq!((first.number, first.last_until), (1, 0));
    for _ in 0..2 {
        let reply = keeper.answer(StoreRequest::Roll { from: 1, at: AT });
        let StoreReply::Changes(changes) = reply else { panic!("{reply:?}") };
        let epoch = changes.epoch;
        assert_eq!(
            (epoch.number, epoch.began, epoch.last_until),
            (2, AT, AT + LAST_EPOCH_SECONDS),
            "only once"
        );
    }
}

/// Two registries on one store see what the other did.
fn two_at_once(open: Open<'_>, at: &Path) {
    let (mut one, mut two) = (open(at), open(at));
    let join = one.issue(&issue(WordKind::Join, "join"), AT).unwrap();
    let known = changes(&mut *two, 0);
    assert_eq!(known.words.len(), 1);
    for index in 0..20 {
        let keeper = if index % 2 == 0 { &mut *one } else { &mut *two };
        enrol(keeper, &relay(index, &[&format!("192.0.2.{index}:1")], join.number)).unwrap();
    }
    assert_eq!(changes(&mut *two, known.revision).relays.len(), 20);
    let crowd = |index| relay(index, &["192.0.2.1:9"], join.number);
    assert_eq!(
        (enrol(&mut *one, &crowd(30)), enrol(&mut *two, &crowd(31))),
        (Ok(()), Err(EnrolRefusal::Crowded))
    );
}

pub fn backup() {
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("sub/registry.db"), directory.path().join("copy.db"));
    let mut keeper = Sqlite::open(&file).unwrap();
    keeper.issue(&issue(WordKind::Use, "alice"), AT).unwrap();
    keeper.backup(&copy).unwrap();
    assert!(keeper.backup(&copy).is_err(), "it is there");
    for path in [&file, &copy] {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let mut other = Sqlite::open(&copy).unwrap();
    other.check().unwrap();
    assert_eq!(*other.secret().unwrap(), *keeper.secret().unwrap());
    assert_eq!(changes(&mut other, 0), changes(&mut keeper, 0));
    drop(other);
    std::fs::write(&copy, vec![7; 5000]).unwrap();
    assert!(Sqlite::open(&copy).is_err());
}

/// A data base that cuts its connections is reached again, and what was answered is there.
pub fn gone_and_back(server: &Server) {
    let mut keeper = byway_registry_store::open(&server.data_base("gone")).unwrap();
    let join = keeper.issue(&issue(WordKind::Join, "join"), AT).unwrap();
    enrol(&mut *keeper, &relay(1, &["192.0.2.1:1"], join.number)).unwrap();
    server.execute("ALTER DATABASE gone ALLOW_CONNECTIONS false");
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gone'";
    server.execute(cut);
    let row = relay(2, &["192.0.2.2:1"], join.number);
    assert_eq!(keeper.answer(StoreRequest::Enrol { row: row.clone(), at: AT }), StoreReply::Gone);
    assert_eq!(keeper.answer(StoreRequest::Changes { since: 0 }), StoreReply::Gone);
    server.execute("ALTER DATABASE gone ALLOW_CONNECTIONS true");
    assert_eq!(enrol(&mut *keeper, &row), Ok(()));
    assert_eq!(changes(&mut *keeper, 0).relays.len(), 2);
}

/// Names the file that a process of [`enrol_for_ever`] writes into.
pub const ENROLS_INTO: &str = "BYWAY_TEST_ENROLS_INTO";

/// Enrols one relay after the other, and says which ones are answered.
pub fn enrol_for_ever(file: &Path) {
    let mut keeper = Sqlite::open(file).unwrap();
    let everything = keeper.everything().unwrap();
    let join = everything.words.first().map(|word| word.number);
    let join = join.unwrap_or_else(|| keeper.issue(&issue(WordKind::Join, "join"), AT).unwrap().number);
    for index in everything.relays.len() as u32.. {
        let [_, a, b, c] = index.to_be_bytes();
        let mut row = relay(0, &[&format!("10.{a}.{b}.{c}:1")], join);
        row.relay.0[..4].copy_from_slice(&index.to_be_bytes());
        row.key.0[..4].copy_from_slice(&index.to_be_bytes());
        enrol(&mut keeper, &row).unwrap();
        println!("{}", row.relay);
    }
}

/// Whenever the process is killed, what it answered is there.
pub fn kills() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("registry.db");
    let mut answered = Vec::new();
    for round in 0..100 {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let mut child = command.env(ENROLS_INTO, &file).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        // Some moment after so many answers, mostly amid the next one.
        answered.extend(lines.by_ref().take(round % 7 + 1).map(Result::unwrap));
        (0..round * 997).for_each(|_| std::hint::spin_loop());
        child.kill().unwrap();
        child.wait().unwrap();
        answered.extend(lines.map_while(Result::ok).filter(|line| line.len() == 32));
        let mut keeper = Sqlite::open(&file).unwrap();
        keeper.check().unwrap();
        let relays = keeper.everything().unwrap().relays;
        let kept: std::collections::BTreeSet<String> =
            relays.iter().map(|row| row.relay.to_string()).collect();
        assert!(answered.iter().all(|relay| kept.contains(relay)), "round {round}");
    }
    assert!(answered.len() >= 300, "{}", answered.len());
}

/// Names the directory that a process of [`fill_the_disk`] uses.
pub const FILLS: &str = "BYWAY_TEST_FILLS";

/// A small disk of the test's own, in a mount namespace of its own.
pub fn full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$1\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(directory.path()).arg(std::env::current_exe().unwrap());
    let done = command.env(FILLS, directory.path()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Enrols on a disk without room, and again when there is some.
pub fn fill_the_disk(directory: &Path) {
    let mut keeper = Sqlite::open(&directory.join("registry.db")).unwrap();
    let join = keeper.issue(&issue(WordKind::Join, "join"), AT).unwrap();
    let row = |index: u8| relay(index, &[&format!("192.0.2.{index}:1")], join.number);
    enrol(&mut keeper, &row(1)).unwrap();
    let ballast = directory.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while std::io::Write::write(&mut file, &[7; 512]).is_ok_and(|written| written > 0) {}
    // Somewhere in the log there may be room for one or two.
    let (mut answered, mut gone) = (vec![row(1)], 0);
    for index in 2..20 {
        match keeper.answer(StoreRequest::Enrol { row: row(index), at: AT }) {
            StoreReply::Enrolled(Ok(())) => answered.push(row(index)),
            StoreReply::Gone => gone += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(gone > 10, "{gone}");
    let seen = LastHeartbeat { relay: row(1).relay, at: AT + 9, counter: 3, load: 5 };
    let note = || StoreRequest::Note { seen: vec![seen], entries: Vec::new() };
    let entry = AuditEntry { at: AT, what: "refused", who: "x".repeat(20_000), detail: String::new() };
    let long = StoreRequest::Note { seen: Vec::new(), entries: vec![entry] };
    assert_eq!(keeper.answer(long), StoreReply::Gone);
    let sorted = |mut rows: Vec<RelayRow>| {
        rows.sort_by_key(|row| row.relay);
        rows
    };
    assert_eq!(sorted(changes(&mut keeper, 0).relays), answered, "what is there is read");
    std::fs::remove_file(&ballast).unwrap();
    drop(file);
    assert_eq!(keeper.answer(note()), StoreReply::Noted);
    for index in 20..30 {
        enrol(&mut keeper, &row(index)).unwrap();
        answered.push(row(index));
    }
    keeper.check().unwrap();
    drop(keeper);
    let mut keeper = Sqlite::open(&directory.join("registry.db")).unwrap();
    let kept = keeper.everything().unwrap();
    assert_eq!((sorted(kept.relays), kept.seen), (answered, vec![seen]));
}
