//! What a program tells the service manager that started it.

use crate::common::{Place, Running};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The longest wait for a message. Programs need far less.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_service_manager_hears_when_a_program_listens_and_when_it_stops() {
    let place = Place::new();
    let (_receiver, ticket) = place.recv(&["in", "--allow-forward", "localhost:9"]);
    for arguments in [
        &["recv", "in2", "--listen", "127.0.0.1:0"][..],
        &["sink", "records", "--listen", "127.0.0.1:0"],
        &["relay", "--listen", "127.0.0.1:0"],
        &["registry", "--listen", "127.0.0.1:0"],
        &["forward", "127.0.0.1:0:localhost:9", "--to", &ticket],
    ] {
        let path = place.path("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let hears = |state: &str| {
            let mut buffer = [0; 64];
            let count =
                manager.recv(&mut buffer).unwrap_or_else(|error| panic!("{arguments:?}: {state}: {error}"));
            assert_eq!(buffer[..count].trim_ascii_end(), state.as_bytes(), "{arguments:?}");
        };
        let mut command = place.command("service", arguments);
        command.env("NOTIFY_SOCKET", &path);
        let running = Running::start(command);
        hears("READY=1");
        running.signal("TERM");
        hears("STOPPING=1");
        let ended = running.end();
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        manager.set_nonblocking(true).unwrap();
        assert!(manager.recv(&mut [0; 64]).is_err(), "{arguments:?}: it says each once");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_program_runs_the_same_if_no_service_manager_hears_it() {
    let place = Place::new();
    let mut command = place.command("service", &["relay", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", place.path("nobody"));
    let mut running = Running::start(command);
    assert!(running.line().starts_with("byway-relay"));
    running.signal("TERM");
    let ended = running.end();
    assert_eq!((ended.code, ended.stderr.contains("otify")), (Some(0), false), "{}", ended.stderr);
}
