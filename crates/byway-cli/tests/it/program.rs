//! The program as a person meets it: what it prints where, and with which code it ends.

use std::process::{Command, Output, Stdio};

fn byway(state: &tempfile::TempDir, arguments: &[&str]) -> Output {
    command(state, arguments).output().unwrap()
}

fn command(state: &tempfile::TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_byway"));
    command.args(arguments).env_clear().env("HOME", state.path()).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn id_prints_the_same_key_every_time_and_keeps_it_private() {
    let state = tempfile::tempdir().unwrap();
    let first = byway(&state, &["id"]);
    assert_eq!(first.status.code(), Some(0));
    let key = text(&first.stdout).trim_end();
    assert!(key.starts_with("byway-key-"), "{key}");
    assert_eq!(text(&first.stderr), "");
    let json = byway(&state, &["id", "--json"]);
    let expected = format!("{{\"v\":1,\"event\":\"result\",\"verb\":\"id\",\"exit\":0,\"key\":\"{key}\"}}\n");
    assert_eq!(text(&json.stdout), expected);
    assert!(state.path().join(".local/share/byway/identity").is_file());
}

#[test]
fn every_failure_is_one_sentence_and_a_code() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("file");
    std::fs::write(&file, "").unwrap();
    let under_a_file = file.join("below").display().to_string();
    let failed = byway(&state, &["id", "--state-dir", &under_a_file]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).starts_with("byway: cannot "), "{}", text(&failed.stderr));
    assert_eq!(text(&failed.stderr).lines().count(), 1);
    let failed = byway(&state, &["id", "--json", "--state-dir", &under_a_file]);
    let result: serde_json::Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!((&result["event"], &result["exit"]), (&"result".into(), &1.into()));
}

#[test]
fn usage_errors_end_with_2_and_help_with_0() {
    let state = tempfile::tempdir().unwrap();
    for arguments in [&["fly"][..], &["id", "--wings"], &[]] {
        let output = byway(&state, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
    }
    let json = byway(&state, &["id", "--json", "--wings"]);
    let result: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(result["exit"], 2);
    assert!(result["error"].as_str().unwrap().contains("--wings"));
    for arguments in [["--help"], ["--version"]] {
        assert_eq!(byway(&state, &arguments).status.code(), Some(0), "{arguments:?}");
    }
    assert!(text(&byway(&state, &["--help"]).stdout).starts_with("Examples:\n"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let state = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&state, &["id"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_gateways_configuration_is_explained_or_refused_with_its_line() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("gw.toml");
    let path = file.display().to_string();
    let check = |arguments: &[&str]| byway(&state, &[&["gateway", "check", &path], arguments].concat());
    assert_eq!(check(&[]).status.code(), Some(3));
    let peer = format!(
        "[[peer]]\nname = \"b\"\nkey = \"{}\"\nallowed = [\"10.2.0.0/16\"]\n",
        text(&byway(&state, &["id"]).stdout).trim()
    );
    std::fs::write(
        &file,
        format!("[gateway]\nserves = [\"10.1.0.0/16\"]\n{peer}[[rule]]\nto-ports = [873]\n"),
    )
    .unwrap();
    let good = check(&[]);
    assert_eq!((good.status.code(), text(&good.stderr)), (Some(0), ""));
    let told = text(&good.stdout);
    assert!(
        told.contains("Rule 1: TCP flows opened on either side, to port 873, are carried as background."),
        "{told}"
    );
    let json: serde_json::Value = serde_json::from_slice(&check(&["--json"]).stdout).unwrap();
    assert_eq!(
        (&json["event"], &json["verb"], &json["exit"]),
        (&"result".into(), &"gateway".into(), &0.into())
    );
    assert!(json["nftables"].as_str().unwrap().contains("table inet byway_gw"), "{json}");
    std::fs::write(&file, "[gateway]\nserves = [\"10.1.0.1/16\"]\n").unwrap();
    let bad = check(&[]);
    assert_eq!((bad.status.code(), text(&bad.stdout)), (Some(2), ""));
    let expected = format!(
        "byway: {path}:2: `10.1.0.1/16`: bits behind the length are set; the prefix would be 10.1.0.0/16\n"
    );
    assert_eq!(text(&bad.stderr), expected);
}
