//! What a new user meets: what clumsy commands do and say.

use crate::common::{Place, Running};
use byway_transfer::ticket::Ticket;
use byway_wire::relay::Word;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

#[test]
fn the_demo_takes_a_file() {
    let place = Place::new();
    fs::write(place.path("a.bin"), vec![7; 300_000]).unwrap();
    let demo = place.run("here", &["demo", "a.bin", "--json"]);
    demo.succeeded();
    assert_eq!(demo.result()["verified"], true);
    place.run("here", &["demo", "/dev/null"]).failed(2, "/dev/null holds nothing that can be sent");
}

#[test]
fn a_folded_ticket_is_taken_from_a_file_the_environment_and_the_command_line() {
    let place = Place::new();
    fs::write(place.path("file"), "contents").unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    let folded = format!("{}\r\n    {}", &ticket[..76], &ticket[76..]);
    fs::write(place.path("ticket"), format!("{folded}\n")).unwrap();
    fs::write(place.path("all"), format!("on the other host: byway send PATH {ticket}\nlistening\n"))
        .unwrap();
    place.run("sender", &["send", "file", "@ticket"]).succeeded();
    place.run("sender", &["send", "file", "@all"]).succeeded();
    place.run("sender", &["send", "file", &folded]).succeeded();
    place.run("sender", &["send", "file", &ticket[..76], &ticket[76..]]).succeeded();
    let mut command = place.command("sender", &["send", "file"]);
    command.env("BYWAY_TICKET", &folded);
    Running::start(command).end().succeeded();
    receiver.interrupt();
    assert_eq!(receiver.end().code, Some(130));
}

#[test]
fn the_command_that_goes_on_keeps_the_ticket() {
    let place = Place::new();
    let (receiver, _) = place.recv(&["in", "--new-ticket"]);
    receiver.interrupt();
    let said = receiver.end().stderr;
    let command = said.lines().find(|line| line.contains("to go on, with the same ticket")).unwrap();
    assert!(command.ends_with("byway recv --listen 127.0.0.1:0 in"), "{command}");
}

#[test]
fn what_was_named_and_cannot_be_sent_is_missed() {
    let place = Place::new();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    fs::write(place.path("file"), "contents").unwrap();
    let (receiver, ticket) = place.recv(&["in"]);
    for paths in [&["fifo"][..], &["file", "fifo"], &["/dev/null"]] {
        let sent = place.run("sender", &[&["send"], paths, &[&ticket]].concat());
        assert_eq!(sent.code, Some(4), "{}", sent.stderr);
        assert!(sent.stderr.contains("not sent, neither file nor directory nor link"), "{}", sent.stderr);
    }
    assert_eq!(fs::read_to_string(place.path("in/file")).unwrap(), "contents");
    drop(receiver);
}

#[test]
fn a_port_that_is_taken_is_told_once() {
    let place = Place::new();
    let (_receiver, ticket) = place.recv(&["in"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let forward = place.run("sender", &["forward", &format!("{port}:localhost:1"), "--to", &ticket]);
    forward.failed(1, &format!("cannot listen on TCP 127.0.0.1:{port}: Address already in use"));
    assert_eq!(forward.stderr.matches("Address already in use").count(), 1, "{}", forward.stderr);
}

/// A relay's word that has expired, and one from before its key was renewed.
#[test]
fn a_receiver_says_that_a_relay_does_not_take_its_word() {
    let place = Place::new();
    let (relay, before) = place.relay(&["--expires", "0s"]);
    let (receiver, ticket) = place.recv(&["in", "--relay", &before]);
    assert_eq!(ticket.parse::<Ticket>().unwrap().relays, [], "it leads nowhere");
    receiver.interrupt();
    let said = receiver.end().stderr;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("warning: relay")).collect();
    assert!(lines.len() == 1 && lines[0].contains("the relay word has expired"), "{said}");
    relay.interrupt();
    relay.end();

    let (relay, old) = place.relay(&[]);
    let listen = old.parse::<Word>().unwrap().relays()[0].to_string();
    relay.interrupt();
    relay.end();
    let fixed = ["relay", "--listen", &listen, "--allow-destination", "127.0.0.0/8", "--roll-key"];
    let mut relay = Running::start(place.command("relay", &fixed));
    let new = relay.line();
    // Two words of one relay: each is told of by itself.
    let (receiver, ticket) = place.recv(&["in", "--relay", &old, "--relay", &new]);
    let ticket: Ticket = ticket.parse().unwrap();
    assert_eq!(ticket.relays.iter().map(|relay| relay.word.reveal()).collect::<Vec<_>>(), [new]);
    receiver.interrupt();
    let said = receiver.end().stderr;
    assert_eq!(said.matches("warning: relay").count(), 1, "{said}");
    assert!(said.contains("the relay does not know this word"), "{said}");
}

#[test]
fn a_relay_that_is_reached_by_one_of_its_addresses_is_no_cause_for_alarm() {
    let place = Place::new();
    let dead = UdpSocket::bind("[::1]:0").unwrap();
    let v4 = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let v6 = dead.local_addr().unwrap().to_string();
    let mut relay = ["relay", "--listen", &v4, "--advertise", &v4, "--advertise", &v6].to_vec();
    relay.extend(["--allow-destination", "127.0.0.0/8"]);
    let mut relay = Running::start(place.command("relay", &relay));
    let word = relay.line();
    let command = ["recv", "in", "--listen", "127.0.0.1:0", "--listen", "[::1]:0", "--relay", &word];
    let mut receiver = Running::start(place.command("receiver", &command));
    let ticket: Ticket = receiver.line().parse().unwrap();
    assert_eq!(ticket.relays.len(), 1);
    // The other address is given up after some 5 seconds.
    let mut probe = [0; 2_000];
    dead.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for _ in 0..6 {
        dead.recv(&mut probe).unwrap();
    }
    std::thread::sleep(Duration::from_secs(2));
    receiver.interrupt();
    let said = receiver.end().stderr;
    assert!(!said.contains("warning: relay"), "{said}");
    assert!(said.contains("through the relay no port has to be opened"), "{said}");
}

#[test]
fn a_refusal_to_send_to_a_private_address_names_the_option() {
    let place = Place::new();
    let mut relay = Running::start(place.command("relay", &["relay", "--listen", "127.0.0.1:0"]));
    let word = relay.line();
    let (receiver, _) = place.recv(&["in", "--relay", &word]);
    receiver.interrupt();
    let said = receiver.end().stderr;
    assert!(
        said.contains("it sends to no private address: start it with --allow-destination 127.0.0.0/24"),
        "{said}"
    );
    assert_eq!(said.matches("warning: relay").count(), 1, "{said}");
}

#[test]
fn those_who_are_asked_first_say_what_to_open_who_reaches_them_and_what_is_next() {
    let place = Place::new();
    let said = |arguments: &[&str]| {
        let running = {
            let mut running = Running::start(place.command("here", arguments));
            running.line();
            running
        };
        running.interrupt();
        running.end().stderr
    };
    // Ports that the system gives nobody by itself: those begin at 32768.
    for (arguments, words) in [
        (
            &["relay", "--listen", "127.0.0.1:14748"][..],
            [
                "on the host that receives: byway recv DIR --relay WORD\n",
                "a firewall on the way must let in UDP and TCP port 14748\n",
                "warning: only this host can use this relay: its word names no address of a network\n",
            ],
        ),
        (
            &["registry", "--listen", "127.0.0.1:14750"],
            [
                "byway send PATH TICKET --registry @use.word\n",
                "a firewall on the way must let in UDP port 14750\n",
                "warning: only this host can ask this registry: its words name no address of a network\n",
            ],
        ),
        (
            &["sink", "records", "--listen", "127.0.0.1:14760"],
            [
                "program | byway source --name NAME --demand RATE --to TICKET\n",
                "a firewall on the way must let in TCP port 14760\n",
                "warning: only this host can send here: the ticket names no address of a network\n",
            ],
        ),
    ] {
        let said = said(arguments);
        for words in words {
            assert!(said.contains(words), "{arguments:?}: {words:?} in\n{said}");
        }
    }
    let advertised = said(&["relay", "--listen", "127.0.0.1:0", "--advertise", "198.51.100.7"]);
    assert!(!advertised.contains("warning"), "{advertised}");
}
