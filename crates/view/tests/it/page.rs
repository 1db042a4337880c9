//! What a person's browser gets.

use super::{Place, sender};
use byway_transfer::host_status::{History, HistoryEntry};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of all files of the page.
const MAX_PAGE_BYTES: usize = 150 << 10;

#[test]
fn the_page_is_small_and_complete_and_names_nothing_elsewhere() {
    let place = Place::new();
    let (folder, cookie) = place.enter();
    let cookie = format!("Cookie: {cookie}\r\n");
    let mut sum = 0;
    for (name, kind) in [
        ("", "text/html"),
        ("view.css", "text/css"),
        ("view.js", "text/javascript"),
        ("figures.js", "text/javascript"),
        ("pictures.js", "text/javascript"),
        ("icon.svg", "image/svg"),
        ("words.json", "application/json"),
    ] {
        let answer = place.get(&format!("{folder}{name}"), &cookie);
        assert_eq!(answer.status, 200, "{name}");
        assert!(answer.field("content-type").unwrap().starts_with(kind), "{name}: {}", answer.head);
        assert!(answer.field("content-security-policy").unwrap().starts_with("default-src 'self';"));
        for (field, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.field(field).as_deref(), Some(value), "{name}");
        }
        let elsewhere = answer.body.replace("http://www.w3.org/2000/svg", "");
        assert!(!elsewhere.contains("http://") && !elsewhere.contains("https://"), "{name}");
        assert!(
            !elsewhere.contains("innerHTML") && !elsewhere.contains("style=") && !elsewhere.contains("eval("),
            "{name}"
        );
        sum += answer.head.len() + answer.body.len();
    }
    assert!(sum <= MAX_PAGE_BYTES, "{sum} bytes");
    let words: Value =
        serde_json::from_str(&place.get(&format!("{folder}words.json"), &cookie).body).unwrap();
    assert_eq!(words["reasons"]["yielding"][0], "yielding");
    assert_eq!(place.get(&format!("{folder}nothing"), &cookie).status, 404);
}

#[test]
fn frames_tell_transfers_and_the_past_has_their_figures() {
    let place = Place::new();
    let told = AtomicU64::new(1);
    let _process = place.process("send", move || {
        let second = told.fetch_add(1, Ordering::Relaxed);
        sender(second as f64, second * 1_000_000).to_string()
    });
    let (folder, cookie) = place.enter();
    let frames: Vec<Value> = place.frames(&folder, &cookie).take(3).collect();
    let transfer = &frames[2]["processes"][0]["transfers"][0];
    assert_eq!(
        (&transfer["bps"], &transfer["pause"]),
        (&json!(8_000_000), &json!("bandwidth_limit")),
        "{transfer}"
    );
    assert_eq!(transfer["paths"][0]["interface"], "lo");
    let uplinks = frames[2]["uplinks"].as_array().unwrap();
    let loopback = uplinks.iter().find(|uplink| uplink["name"] == "lo").unwrap();
    assert!(loopback["up"]["total_bps"].is_number(), "{loopback}");
    let cookie = format!("Cookie: {cookie}\r\n");
    let past = |path: &str| -> Value {
        let answer = place.get(&format!("{folder}{path}"), &cookie);
        assert_eq!(answer.status, 200, "{path}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let of_transfer = past(&format!("transfers/{}", transfer["id"]));
    assert!(
        of_transfer["paths"]["s0"]["queue_ms"].as_array().unwrap().contains(&json!(2.5)),
        "{of_transfer}"
    );
    assert!(past("uplinks/lo")["up"]["own"].as_array().unwrap().len() >= 3);
    for absent in ["transfers/999", "uplinks/nowhere", "uplinks/..%2f..%2fetc", "transfers/x"] {
        assert!([400, 404].contains(&place.get(&format!("{folder}{absent}"), &cookie).status), "{absent}");
    }
}

#[test]
fn the_history_is_told_and_a_frame_says_when_it_changed() {
    let place = Place::new();
    let history = History::at(place.directory.path().join("history"));
    let (folder, cookie) = place.enter();
    let mut frames = place.frames(&folder, &cookie);
    let before = frames.next().unwrap()["history"].clone();
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let result = json!({ "exit": 5, "error": "no answer" });
    history.add(&HistoryEntry { at, verb: "send".into(), peer: Some("nas".into()), result }).unwrap();
    assert!(frames.by_ref().take(60).any(|frame| frame["history"] != before));
    let answer = place.get(&format!("{folder}history.json"), &format!("Cookie: {cookie}\r\n"));
    let past: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&past["transfers"], &past["failed"]), (&json!(1), &json!(1)));
    assert_eq!(past["newest"][0]["error"], "no answer");
}
