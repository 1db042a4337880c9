//! Processes that answer, and those that do not: a client that says nothing, or too much, or reads
//! nothing, holds up no other for long.

use super::{NoAnswer, Request, RuntimeDirectory, StatusSocket, ask_all, ask_each};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time that all processes together have to answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn directory(at: &Path) -> RuntimeDirectory {
    let user = rustix::process::geteuid().as_raw();
    RuntimeDirectory::locate(user, |name| (name == "BYWAY_RUNTIME_DIR").then(|| at.join("run").into()))
}

/// The socket of a process that repeats each request.
fn repeating(directory: &RuntimeDirectory, verb: &str) -> StatusSocket {
    StatusSocket::open(directory, verb, |request| json!(request).to_string()).unwrap()
}

fn names(directory: &RuntimeDirectory) -> Vec<String> {
    let answers = ask_all(std::slice::from_ref(directory), &Request::Status, PATIENCE);
    answers.into_iter().map(|answer| answer.name).collect()
}

#[test]
fn each_process_answers_until_it_ends() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    assert_eq!(names(&directory), [""; 0], "there is no directory yet");
    let [recv, send] = ["recv", "send"].map(|verb| repeating(&directory, verb));
    assert_eq!(fs::metadata(recv.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let asked = Request::Limit { peer: Some("nas".into()), up: Some(7), down: None, void_after: None };
    let answers = ask_all(std::slice::from_ref(&directory), &asked, PATIENCE);
    let process = std::process::id();
    let told: Vec<String> = answers.iter().map(|answer| answer.name.clone()).collect();
    assert_eq!(told, [format!("recv-{process}"), format!("send-{process}")]);
    assert!(answers.iter().all(|answer| answer.reply == Ok(json!(asked))), "{answers:?}");
    drop(send);
    assert_eq!(names(&directory), [format!("recv-{process}")]);
    drop(recv);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn sockets_of_the_dead_are_removed_by_whoever_finds_them_and_nothing_else_is() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let recv = repeating(&directory, "recv");
    let at = |name: &str| directory.path().join(name);
    drop(UnixListener::bind(at("send-1.socket")).unwrap());
    // A unit of systemd, a file, and a link to a socket that nobody listens on.
    fs::write(at("sshd.socket"), "[Socket]").unwrap();
    fs::write(at("notes"), "of somebody").unwrap();
    drop(UnixListener::bind(place.path().join("elsewhere")).unwrap());
    symlink(place.path().join("elsewhere"), at("send-2.socket")).unwrap();
    assert_eq!(names(&directory).len(), 1);
    assert!(!at("send-1.socket").exists() && recv.path().exists());
    let left = ["sshd.socket", "notes", "send-2.socket"];
    assert!(left.iter().all(|name| at(name).symlink_metadata().is_ok()));
    assert!(place.path().join("elsewhere").exists());
}

#[test]
fn nothing_is_asked_in_a_directory_that_others_can_write_to() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let _recv = repeating(&directory, "recv");
    drop(UnixListener::bind(directory.path().join("send-1.socket")).unwrap());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o770)).unwrap();
    assert_eq!(names(&directory), [""; 0]);
    assert!(directory.path().join("send-1.socket").exists());
}

#[test]
fn processes_of_one_number_have_a_name_each() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let both = [repeating(&directory, "recv"), repeating(&directory, "recv")];
    let process = std::process::id();
    assert_eq!(names(&directory), [format!("recv-{process}"), format!("recv-{process}-2")]);
    drop(both);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn clients_without_manners_hold_nobody_up() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let socket = repeating(&directory, "recv");
    let connect = || UnixStream::connect(socket.path()).unwrap();
    let silent = connect();
    let mut endless = connect();
    // It is hung up on amid this.
    let _ = endless.write_all(&vec![b'x'; 1 << 20]);
    let mut wrong = connect();
    wrong.write_all(b"{\"ask\":\"money\"}\n").unwrap();
    let mut said = String::new();
    wrong.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("{\"error\":\"unknown variant"), "{said}");
    for _ in 0..500 {
        drop(connect());
    }
    assert_eq!(names(&directory).len(), 1);
    drop((silent, endless));
}

#[test]
fn one_that_is_stopped_does_not_answer_and_costs_others_nothing() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let _recv = repeating(&directory, "recv");
    // Its process accepts nothing.
    let stopped = UnixListener::bind(directory.path().join("send-1.socket")).unwrap();
    let begun = Instant::now();
    let patience = Duration::from_millis(300);
    let answers = ask_all(std::slice::from_ref(&directory), &Request::Status, patience);
    assert!(begun.elapsed() < PATIENCE);
    let replies: Vec<_> = answers.into_iter().map(|answer| answer.reply).collect();
    assert_eq!(replies, [Ok(json!(Request::Status)), Err(NoAnswer::Late)]);
    drop(stopped);
}

#[test]
fn one_that_is_stopped_hides_no_long_answer() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    let listen = |name: &str| UnixListener::bind(directory.path().join(name));
    fs::DirBuilder::new().mode(0o700).create(directory.path()).unwrap();
    let (stopped, sends) = (listen("recv-1.socket").unwrap(), listen("send-1.socket").unwrap());
    // More than a socket holds, so that whoever answers waits for whoever reads.
    let answering = thread::spawn(move || {
        let mut client = sends.accept()?.0;
        BufReader::new(&client).read_until(b'\n', &mut Vec::new())?;
        client.write_all(&[b'x'; 2_000_000])
    });
    let (mut stopped, mut came) = (Some(stopped), Vec::new());
    ask_each(std::slice::from_ref(&directory), &Request::Status, PATIENCE, |name, text| {
        came.push((name.to_owned(), text.map(<[u8]>::len)));
        // Its connection ends with it.
        drop(stopped.take());
    });
    answering.join().unwrap().unwrap();
    assert_eq!(came, [("send-1".to_owned(), Ok(2_000_000)), ("recv-1".to_owned(), Err(NoAnswer::Late))]);
}

#[test]
fn what_is_no_object_is_no_answer() {
    let place = tempfile::tempdir().unwrap();
    let directory = directory(place.path());
    for reply in ["[]", "7", "{", "{}\n{}", ""] {
        let _recv = StatusSocket::open(&directory, "recv", move |_| reply.to_owned()).unwrap();
        let answers = ask_all(std::slice::from_ref(&directory), &Request::Status, PATIENCE);
        assert_eq!(answers.into_iter().map(|it| it.reply).collect::<Vec<_>>(), [Err(NoAnswer::Garbled)]);
    }
}
