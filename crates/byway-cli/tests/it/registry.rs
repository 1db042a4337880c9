//! A registry, relays that enrol, and a transfer that asks it, as processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A process that is ended with its test.
struct Running {
    child: Child,
    events: BufReader<ChildStdout>,
}

impl Running {
    fn start(state: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_byway"));
        command.args(["--json", "--state-dir"]).arg(state).args(arguments);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { child, events }
    }

    /// The next event of this name.
    fn event(&mut self, name: &str) -> serde_json::Value {
        for line in std::io::Read::by_ref(&mut self.events).lines() {
            let event: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            if event["event"] == name {
                return event;
            }
        }
        panic!("it ended without {name}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text<'a>(event: &'a serde_json::Value, field: &str) -> &'a str {
    event[field].as_str().unwrap()
}

#[test]
fn relays_enrol_and_a_transfer_is_told_of_them() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let run = |name: &str, arguments: &[&str]| Running::start(&at(name), arguments);
    let hub = || run("hub", &["registry", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let mut registry = hub();
    let ready = registry.event("ready");
    assert!(text(&ready, "address").starts_with("127.0.0.1:"));
    let (join, ask) = (text(&ready, "join"), text(&ready, "use"));
    let relay = |name: &str, listen: &str, more: &[&str]| {
        let allow = ["--allow-destination", "127.0.0.0/8"];
        run(
            name,
            &[&["relay", "--listen", listen, "--registry", join, "--operator", name][..], &allow, more]
                .concat(),
        )
    };
    let mut relays = [relay("one", "127.0.0.2:0", &[]), relay("two", "127.0.0.3:0", &["--no-tcp"])];
    for relay in &mut relays {
        assert_eq!(relay.event("enrolled")["addresses"].as_array().unwrap().len(), 1);
    }
    let listed = run("sender", &["relays", "--registry", ask]).event("result");
    let operators = |event: &serde_json::Value| {
        let relays = event["relays"].as_array().unwrap().iter();
        let mut operators: Vec<_> = relays.map(|relay| text(relay, "operator").to_owned()).collect();
        operators.sort();
        operators
    };
    assert_eq!(operators(&listed), ["one", "two"]);
    // Each says what it forwards over, as the registry tested it.
    for relay in listed["relays"].as_array().unwrap() {
        let over = if relay["operator"] == "one" {
            serde_json::json!(["udp", "tcp"])
        } else {
            serde_json::json!(["udp"])
        };
        assert_eq!(relay["carriers"], over, "{relay}");
    }
    let mut page = std::net::TcpStream::connect(text(&ready, "http")).unwrap();
    page.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert!(BufReader::new(page).lines().next().unwrap().unwrap().contains("200"));
    // A word for joining does not ask.
    assert_eq!(run("sender", &["relays", "--registry", join]).event("result")["exit"], 6);
    std::fs::create_dir(at("in")).unwrap();
    let (file, into) = (at("file"), at("in"));
    let mut receiver = run("receiver", &["recv", into.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let ticket = receiver.event("ready");
    // Who was never told of a list learns it during the first round.
    let ping = ["ping", text(&ticket, "ticket"), "--registry", ask, "-c", "2"];
    let pinged = run("friend", &ping).event("result");
    let routes: Vec<_> =
        pinged["paths"].as_array().unwrap().iter().map(|path| text(path, "route").to_owned()).collect();
    let through = |relay: &str| routes.iter().any(|route| route.contains(relay));
    assert!(through("127.0.0.2:") && through("127.0.0.3:") && through("direct"), "{pinged}");
    let send = |content: u8| {
        // What the receiver has already would be over before both relays are tried.
        std::fs::write(&file, vec![content; 3 << 20]).unwrap();
        let send =
            ["send", file.to_str().unwrap(), text(&ticket, "ticket"), "--registry", ask, "--bwlimit", "2M"];
        let result = run("sender", &send).event("result");
        assert_eq!((&result["exit"], &result["verified"]), (&0.into(), &true.into()), "{result}");
        result["relays"].as_array().unwrap().len()
    };
    assert_eq!(send(7), 2);
    // With the other word a transfer goes on without the registry, and says why.
    let other =
        ["send", file.to_str().unwrap(), text(&ticket, "ticket"), "--registry", join, "--bwlimit", "2M"];
    let warning = run("sender", &other).event("warning");
    assert!(text(&warning, "message").contains("this word is for something else"), "{warning}");
    // Killed, it has forgotten nothing that it answered; and without it the last list is good.
    drop(registry);
    assert_eq!(send(8), 2);
    let words = run("hub", &["registry", "list"]).event("result");
    assert_eq!(operators(&words), ["one", "two"]);
    assert_eq!(words["words"].as_array().unwrap().len(), 2);
    let over_tcp = |relay: &&serde_json::Value| relay["carriers"].as_array().unwrap().len() == 2;
    assert_eq!(words["relays"].as_array().unwrap().iter().filter(over_tcp).count(), 1);
}

#[test]
fn a_word_that_cannot_be_printed_is_not_kept() {
    let place = crate::common::Place::new();
    let word = ["registry", "word", "--for", "alice"];
    place.run("hub", &word).failed(1, "no registry ran with this store yet");
    let listed = place.run("hub", &["registry", "list", "--json"]).result();
    assert_eq!(listed["words"], serde_json::json!([]), "{listed}");
}
