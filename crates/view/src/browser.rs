//! Opens an address in the person's browser.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::thread;

/// The program that knows which browser is meant.
const OPENER_PROGRAM: &str = "xdg-open";

/// Opens an address in a browser, if there is a display. Returns whether the browser was asked for.
#[must_use]
pub fn open_in_browser(address: &str, env: impl Fn(&str) -> Option<OsString>) -> bool {
    let has_display =
        ["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| env(name).is_some_and(|it| !it.is_empty()));
    if !has_display {
        return false;
    }
    let mut command = Command::new(OPENER_PROGRAM);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut opener) = command.spawn() else { return false };
    // It may run as long as the browser. Without a thread nobody waits for it.
    let _ = thread::Builder::new().name("browser".into()).spawn(move || opener.wait());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_display_nothing_is_opened() {
        assert!(!open_in_browser("http://127.0.0.1:9/", |_| None));
        assert!(!open_in_browser("http://127.0.0.1:9/", |_| Some("".into())));
    }
}
