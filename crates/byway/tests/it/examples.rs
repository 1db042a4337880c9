//! The examples do what they say.

use crate::common::pair;
use std::path::Path;
use std::thread;

#[path = "../../examples/listen.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod listen;
#[path = "../../examples/send.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "its main is for people")]
mod send;

#[test]
fn files_are_dropped_and_names_lead_nowhere_else() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    for directory in [&from, &to] {
        std::fs::create_dir(directory).unwrap();
    }
    let files = [("empty", 0), ("small", 100), ("large", 5 << 20)];
    for (name, size) in files {
        std::fs::write(from.join(name), crate::common::bytes(size as u64, size)).unwrap();
    }
    let (_listener, near, far) = pair();
    let target = to.clone();
    let taker = thread::spawn(move || listen::take(&far, &target).map_err(|error| error.to_string()));
    for (name, _) in files {
        send::send(&near, &from.join(name)).unwrap();
    }
    near.close().unwrap();
    assert_eq!(taker.join().unwrap(), Ok(3));
    for (name, size) in files {
        let read = std::fs::read(to.join(name)).unwrap();
        assert!(read == crate::common::bytes(size as u64, size), "{name}");
    }
    for name in ["../outside", "a/b", "..", "/etc/x", "small/", ""] {
        let (_listener, near, far) = pair();
        let target = to.clone();
        let taker = thread::spawn(move || listen::take(&far, &target).map_err(|error| error.to_string()));
        near.send_object(name.as_bytes(), 0, &[][..]).unwrap();
        let error = taker.join().unwrap().unwrap_err();
        assert!(error.contains("no name of a file"), "{name}: {error}");
    }
    assert!(!Path::new(&place.path().join("outside")).exists());
}
