//! Two hosts that get to know each other by a code.

use crate::common::{Ended, Place, Running, assert_same};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A receiver called `nas` by its own file of defaults, and a relay, at which it has a word.
struct Site {
    place: Place,
    relay: Option<Running>,
    word: String,
    receiver: Running,
}

impl Site {
    fn new() -> Self {
        let place = Place::new();
        fs::write(place.path("file"), vec![7; 10_000]).unwrap();
        let (relay, word) = place.relay(&[]);
        let (receiver, _) = place.recv(&["in", "--relay", &word]);
        Self { place, relay: Some(relay), word, receiver }
    }

    /// A host that shows a code, and the command that it wants the other to type.
    fn opener(&self, host: &str, more: &[&str]) -> (Running, String, String) {
        let mut opener = Running::start(self.place.command(host, &[&["pair", "--json"], more].concat()));
        let code = opener.event("code");
        let [code, command] = ["code", "command"].map(|field| code[field].as_str().unwrap().to_owned());
        (opener, code, command)
    }

    fn relay_address(&self) -> String {
        let word: byway_wire::relay::Word = self.word.parse().unwrap();
        word.relays()[0].to_string()
    }

    fn pair(&self, host: &str, arguments: &[&str]) -> Ended {
        self.place.run(host, &[&["pair"], arguments].concat())
    }
}

/// The part of the command behind `byway pair`.
fn typed(command: &str) -> &str {
    command.strip_prefix("byway pair ").unwrap()
}

#[test]
fn a_code_is_all_that_a_person_carries_to_the_other_host() {
    let site = Site::new();
    // The receiver's ticket names the relay. The other host knows nothing of it.
    let (mut opener, _, command) = site.opener("receiver", &["laptop"]);
    site.pair("sender", &[typed(&command), "nas"]).succeeded();
    let paired = opener.event("result");
    assert_eq!(
        (&paired["exit"], &paired["name"], &paired["ticket"]),
        (&0.into(), &"laptop".into(), &false.into())
    );
    let key = String::from_utf8(site.place.run("sender", &["id"]).stdout).unwrap();
    assert_eq!(paired["key"].as_str(), Some(key.trim()));
    site.place.run("sender", &["send", "file", "nas:"]).succeeded();
    assert_same(&site.place.path("file"), &site.place.path("in/file"));
    let listed = site.place.run("receiver", &["peer", "list"]);
    assert!(String::from_utf8(listed.stdout).unwrap().contains(key.trim()));
    site.place.run("receiver", &["config", "check"]).succeeded();
    site.place.run("receiver", &["send", "file", "laptop:"]).failed(2, "nothing can be sent to it");
    // From now on it alone may send, into a directory of its own.
    drop(site.receiver);
    let (_receiver, ticket) = site.place.recv(&["in", "--allow", "laptop=from-laptop"]);
    site.place.run("stranger", &["send", "file", &ticket]).failed(6, "admits only certain keys");
    site.place.run("sender", &["send", "file", &ticket]).succeeded();
    assert_same(&site.place.path("file"), &site.place.path("in/from-laptop/file"));
}

#[test]
fn a_wrong_code_tells_nothing_and_ends_the_right_one() {
    let site = Site::new();
    let (mut opener, code, command) = site.opener("receiver", &[]);
    let guess = if code.ends_with("-acorn-acorn") { "-acorn-almond" } else { "-acorn-acorn" };
    let guess = format!("{}{guess}", code.split_once('-').unwrap().0);
    let relay = site.relay_address();
    let wrong = site.pair("sender", &[&format!("{guess}@{relay}"), "nas"]);
    wrong.failed(6, "has another code");
    let result = opener.event("result");
    assert_eq!(result["exit"], 6, "{result}");
    site.pair("sender", &[typed(&command), "nas"]).failed(6, "used the code");
    site.place.run("sender", &["ping", "nas"]).failed(2, "no peer is called `nas`");
}

#[test]
fn of_two_guests_at_once_one_is_the_other_host() {
    let site = Site::new();
    let (mut opener, _, command) = site.opener("receiver", &[]);
    let guests = ["sender", "stranger"]
        .map(|host| Running::start(site.place.command(host, &["pair", typed(&command), "nas"])));
    let codes = guests.map(|guest| guest.end().code);
    assert!(codes == [Some(0), Some(6)] || codes == [Some(6), Some(0)], "{codes:?}");
    assert_eq!(opener.event("result")["exit"], 0);
}

#[test]
fn what_a_person_may_mistype_is_told_before_a_guess_is_used() {
    let site = Site::new();
    let (_opener, code, _) = site.opener("receiver", &[]);
    let relay = site.relay_address();
    for (arguments, words) in [
        (vec!["7-crosover-clockwork"], "`crossover` is meant"),
        (vec!["7-crossover"], "a code is a number and two words"),
        (vec!["crossover-clockwork"], "a code is a number and two words"),
        (vec!["7-crossover-clockwork", "--no-config"], "no configuration file to write"),
        (vec!["7-crossover-clockwork", "-x"], "-x"),
        (vec!["7-crossover-clockwork@nowhere"], "`nowhere` is no relay's address"),
        (vec!["7-crossover-clockwork"], "no relay is known"),
        (vec![], "no relay is known"),
    ] {
        let ended = site.pair("sender", &arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{arguments:?}: {}", ended.stderr);
    }
    let unused = format!("9999-crossover-clockwork@{relay}");
    site.pair("sender", &[&unused]).failed(6, "no host waits with the code 9999-crossover-clockwork");
    // The code is good still, under a word too, and without a name the host has its own.
    let ended = site.pair("sender", &["--relay", &site.word, &code, "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let name = ended.result()["name"].as_str().unwrap().to_owned();
    let (_again, _, again) = site.opener("receiver", &[]);
    site.pair("sender", &[typed(&again), &name]).failed(2, "already: choose another name");
    let again = site.pair("sender", &[typed(&again), "--json"]);
    assert_eq!(again.result()["name"], name.as_str(), "it is known already");
}

#[test]
fn what_the_other_host_calls_itself_takes_nobody_s_name() {
    let site = Site::new();
    let (_opener, _, command) = site.opener("receiver", &[]);
    let name = site.pair("probe", &[typed(&command), "--json"]).result()["name"].as_str().unwrap().to_owned();
    let own = site.place.path("own.toml");
    fs::write(&own, format!("[recv]\nallow = [\"{name}\", \"{name}-2=in\"]\n")).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o600)).unwrap();
    let (_opener, _, command) = site.opener("receiver", &[]);
    let mut pair = site.place.command("sender", &["pair", typed(&command), "--json"]);
    pair.env("BYWAY_CONFIG", &own);
    let mut pair = Running::start(pair);
    assert_eq!(pair.event("result")["name"], format!("{name}-3"));
}

#[test]
fn a_relay_that_is_gone_or_knows_no_such_word_is_told() {
    let mut site = Site::new();
    site.pair("sender", &["--relay", &site.word, "7-crossover-clockwork"]).failed(6, "no host waits");
    // One with another key at the same address, which sends to public addresses alone, and then to
    // this one too. At last there is none.
    let port = site.relay_address();
    drop(site.relay.take());
    for (more, refusal) in [
        (&[][..], "does not send to"),
        (&["--allow-destination", "127.0.0.0/8"][..], "does not know this word"),
    ] {
        let again = [&["relay", "--listen", &port, "--key-file", "other"], more].concat();
        let mut relay = Running::start(site.place.command("relay", &again));
        relay.line();
        site.pair("sender", &["--relay", &site.word]).failed(6, refusal);
    }
    site.pair("sender", &["--relay", &site.word]).failed(5, "pairing needs UDP");
}

#[test]
fn a_host_that_receives_later_gets_no_second_name() {
    let site = Site::new();
    let word = ["--relay", &site.word];
    for name in [&["nas"][..], &[]] {
        // It receives nothing yet.
        let (mut opener, _, command) = site.opener("stranger", &word);
        site.pair("sender", &[&[typed(&command)], name].concat()).succeeded();
        assert_eq!(opener.event("result")["exit"], 0);
    }
    site.place.run("sender", &["send", "file", "nas:"]).failed(2, "nothing can be sent to it");
    let receiver = site.place.command("stranger", &["recv", "in", "--listen", "127.0.0.1:0"]);
    let mut receiver = Running::start(receiver);
    receiver.line();
    let (_opener, _, command) = site.opener("stranger", &word);
    site.pair("sender", &[typed(&command), "nas"]).succeeded();
    site.place.run("sender", &["send", "file", "nas:"]).succeeded();
    let listed = site.place.run("sender", &["peer", "list", "--json"]).result()["peers"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn a_code_on_the_host_that_made_it_and_a_ticket_of_another_are_refused() {
    let site = Site::new();
    let (mut opener, _, command) = site.opener("receiver", &[]);
    site.pair("receiver", &[typed(&command), "nas"]).failed(2, "on the host that made it");
    assert_eq!(opener.event("result")["exit"], 2);
    let ticket = site.place.run("receiver", &["peer", "list"]);
    assert!(!String::from_utf8(ticket.stdout).unwrap().contains("nas"));
    // The ticket that the receiver printed, told by another.
    let ticket = site.place.path("receiver/.local/share/byway/last-ticket");
    let ticket = format!("@{}", ticket.display());
    site.pair("sender", &["--relay", &site.word, "--ticket", &ticket]).failed(2, "of another host");
}

#[test]
fn who_interrupts_it_reads_a_result() {
    let site = Site::new();
    let (mut opener, _, _) = site.opener("receiver", &[]);
    opener.interrupt();
    assert_eq!(opener.event("result")["exit"], 130);
    assert_eq!(opener.end().code, Some(130));
}
