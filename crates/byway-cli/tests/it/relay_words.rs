//! The words of a relay that have names: each is listed, and revoked alone while others go on.

use crate::common::{Place, Running};
use crate::relaying::relay;
use byway_transfer::ticket::Ticket;
use byway_wire::relay::{GRANT_LEN, Word};
use serde_json::Value;
use std::fs;

/// Waits until the relay knows of so many good words.
pub fn until_it_knows(relay: &mut Running, good: u64) {
    while relay.event("words")["good"] != good {}
}

/// A word for a name, made beside the relay that runs in `place`.
pub fn word(place: &Place, name: &str) -> String {
    let made = place.run("relay", &["relay", "word", "--for", name, "--json"]);
    made.succeeded();
    made.result()["word"].as_str().unwrap().to_owned()
}

fn listed(place: &Place, name: &str) -> Value {
    let listed = place.run("relay", &["relay", "words", "--json"]).result();
    let words = listed["words"].as_array().unwrap();
    words.iter().find(|word| word["name"] == name).unwrap().clone()
}

fn until_it_has(sender: &mut Running, bytes: u64) {
    while sender.event("progress")["bytes"].as_u64() < Some(bytes) {}
}

/// A transfer of 2 MB by the relay alone, four seconds long: the sender has only IPv6 and the
/// receiver only IPv4. No direct path is in the ticket.
fn transfer(place: &Place, host: &str, word: &str) -> (Running, Running) {
    let (receiver, ticket) = place.recv(&[host, "--once", "--relay", word, "--no-tcp"]);
    let ticket = Ticket { addresses: Vec::new(), ..ticket.parse::<Ticket>().unwrap() }.to_string();
    let arguments = ["send", "file", &ticket, "--json", "--bind", "[::1]:0", "--relay", word, "--no-tcp"];
    let sender = place.command(host, &[&arguments[..], &["--bwlimit", "500K"]].concat());
    (receiver, Running::start(sender))
}

/// Whether a receiver may use this word, and what it says of it.
fn opens(place: &Place, word: &str) -> (bool, String) {
    let (receiver, ticket) = place.recv(&["later", "--once", "--relay", word]);
    receiver.interrupt();
    (!ticket.parse::<Ticket>().unwrap().relays.is_empty(), receiver.end().stderr)
}

/// A word for the addresses that another word has.
fn moved(word: &str, other: &str) -> String {
    let [word, other] = [word, other].map(|text| text.parse::<Word>().unwrap().to_bytes());
    let addresses_at = 2 + GRANT_LEN + 16;
    Word::from_bytes(&[&word[..addresses_at], &other[addresses_at..]].concat()).unwrap().reveal()
}

#[test]
fn a_word_that_is_revoked_ends_in_the_midst_and_the_transfer_of_another_goes_on() {
    let place = Place::new();
    fs::write(place.path("file"), vec![7; 2_000_000]).unwrap();
    let (mut running, own) = relay(&place, &[]);
    let words = ["alice", "bob"].map(|name| word(&place, name));
    until_it_knows(&mut running, 2);
    assert_eq!(word(&place, "alice"), words[0]);
    let ((_receiver, mut alice), (receiver, mut bob)) =
        (transfer(&place, "alice", &words[0]), transfer(&place, "bob", &words[1]));
    until_it_has(&mut alice, 300_000);
    until_it_has(&mut bob, 300_000);
    let revoked = place.run("relay", &["relay", "revoke", "alice"]);
    revoked.succeeded();
    assert!(revoked.stderr.contains("the word of alice is revoked"), "{}", revoked.stderr);
    let refused = "the relay word was revoked";
    while !alice.event("warning")["message"].as_str().unwrap().contains(refused) {}
    bob.end().succeeded();
    receiver.end().succeeded();
    assert!(fs::read(place.path("file")).unwrap() == fs::read(place.path("bob/file")).unwrap());
    assert!(!place.path("alice/file").exists());
    let (is_open, told) = opens(&place, &words[0]);
    assert!(!is_open && told.contains(refused), "{told}");
    assert!(opens(&place, &words[1]).0 && opens(&place, &own).0);
    running.signal("TERM");
    let ended = running.end();
    ended.succeeded();
    assert!(ended.result()["dropped"][refused].as_u64() > Some(0));
    let [alice, bob] = ["alice", "bob"].map(|name| listed(&place, name));
    assert_eq!((&alice["state"], &bob["state"]), (&"revoked".into(), &"good".into()));
    let carried = [&alice, &bob].map(|word| word["carried_bytes"].as_u64().unwrap());
    assert!((300_000..2_000_000).contains(&carried[0]) && carried[1] > 2_000_000, "{carried:?}");
    // A restart brings the word back no more than it forgets the counts.
    let (running, own) = relay(&place, &[]);
    let again = words.each_ref().map(|word| moved(word, &own));
    assert!(!opens(&place, &again[0]).0 && opens(&place, &again[1]).0);
    running.signal("TERM");
    running.end().succeeded();
    assert!(listed(&place, "bob")["carried_bytes"].as_u64() >= Some(carried[1]));
}

#[test]
fn a_list_of_words_that_is_damaged_keeps_the_relay_from_starting() {
    let place = Place::new();
    let made = |arguments: &[&str]| place.run("relay", &[&["relay"], arguments].concat());
    made(&["word", "--for", "alice"]).failed(2, "it is not known where the relay is");
    made(&["word", "--for", "alice", "--advertise", "127.0.0.1"]).succeeded();
    made(&["word", "--for", "alice", "--rate", "1M"]).failed(2, "alice has a word already");
    made(&["revoke", "bob"]).failed(2, "no word has the name bob");
    let path = place.path("relay/.local/share/byway/relay-words");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, good.replace("good", "gone")).unwrap();
    let damaged = "holds no whole list of words that have names";
    made(&["--listen", "127.0.0.1:0"]).failed(1, damaged);
    made(&["words"]).failed(1, damaged);
    made(&["revoke", "alice"]).failed(1, damaged);
    fs::write(&path, good).unwrap();
    assert_eq!(listed(&place, "alice")["state"], "good");
}
