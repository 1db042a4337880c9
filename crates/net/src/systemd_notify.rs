//! Telling the service manager how this process does, as systemd wants to be told (`sd_notify(3)`).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The message to systemd that the service is ready, so that dependent services may start.
pub const NOTIFY_READY: &str = "READY=1";
/// The message to systemd that the service is about to end.
pub const NOTIFY_STOPPING: &str = "STOPPING=1";

/// Sends a state to the service manager that started this process, if one did. Errors are ignored.
pub fn notify(state: &str) {
    if let Some(place) = std::env::var_os("NOTIFY_SOCKET") {
        let _ = tell(&place, state);
    }
}

/// `place` is a path, or the name of an abstract socket after `@`.
fn tell(place: &OsStr, state: &str) -> io::Result<()> {
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_at_a_path_and_at_a_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let name = format!("byway-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        for (listener, place) in [
            (UnixDatagram::bind(&path).unwrap(), path.into_os_string()),
            (UnixDatagram::bind_addr(&address).unwrap(), format!("@{name}").into()),
        ] {
            tell(&place, NOTIFY_READY).unwrap();
            let mut told = [0; 64];
            let count = listener.recv(&mut told).unwrap();
            assert_eq!(&told[..count], b"READY=1");
        }
        assert!(tell(OsStr::new("/nobody/listens"), NOTIFY_READY).is_err());
    }
}
