//! Which modes files have where they arrive.

use crate::common::{Place, Running};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// A receiver of one transfer under this umask, and its ticket.
fn recv(place: &Place, umask: &str, arguments: &[&str]) -> (Running, String) {
    let arguments = [&["recv", "in", "--once", "--listen", "127.0.0.1:0"], arguments].concat();
    let plain = place.command("receiver", &arguments);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("umask {umask} && exec \"$0\" \"$@\""));
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(place.path(""));
    command.env_clear().env("HOME", place.path("receiver")).env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command);
    let ticket = running.line();
    (running, ticket)
}

#[test]
fn what_arrives_gives_no_more_rights_than_the_receivers_umask_unless_both_sides_say_so() {
    let place = Place::new();
    let set = |name: &str, mode| fs::set_permissions(place.path(name), Permissions::from_mode(mode)).unwrap();
    fs::create_dir_all(place.path("tree/tmp")).unwrap();
    for (name, mode) in [("tree/open", 0o666), ("tree/tool", 0o4755)] {
        fs::write(place.path(name), name).unwrap();
        set(name, mode);
    }
    set("tree/tmp", 0o1777);
    for (umask, receiver, sender, expected) in [
        ("022", &[][..], &[][..], [0o644, 0o755, 0o1755]),
        ("007", &[], &["--keep-modes"], [0o660, 0o750, 0o1770]),
        ("022", &["--keep-modes"], &[], [0o666, 0o755, 0o1777]),
        ("022", &["--keep-modes"], &["--keep-modes"], [0o666, 0o4755, 0o1777]),
    ] {
        let (running, ticket) = recv(&place, umask, receiver);
        place.run("sender", &[&["send", "tree", &ticket], sender].concat()).succeeded();
        running.end().succeeded();
        let mode = |name: &str| place.path("in").join(name).metadata().unwrap().permissions().mode() & 0o7777;
        let found = ["tree/open", "tree/tool", "tree/tmp"].map(mode);
        let [found, expected] = [found, expected].map(|modes| modes.map(|mode| format!("{mode:o}")));
        assert_eq!(found, expected, "with umask {umask}, {receiver:?}, {sender:?}");
        fs::remove_dir_all(place.path("in")).unwrap();
    }
}
