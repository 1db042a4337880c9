//! `byway view`: a page in the browser with all that runs on this host.

use crate::args::{Global, view::View};
use crate::exit::Exit;
use crate::messages;
use crate::output::{Event, Fields, Outcome, Output};
use crate::signals::Hangup;
use anyhow::Result;
use byway_transfer::host_status::History;
use byway_view::{ViewPlan, Words, open_in_browser};
use std::sync::mpsc::sync_channel;

/// Serves the page until a signal.
pub(super) fn run(global: &Global, arguments: &View, output: &mut Output) -> Result<Exit> {
    let signals = output.catch_signals(Hangup::Stop)?;
    super::status::warn_if_untold(output);
    let page = byway_view::View::serve(ViewPlan {
        listen: arguments.listen,
        directories: Box::new(super::status::directories),
        history: History::at(global.state()?.history_path()),
        has_failed: super::status::has_failed,
        words: Words { pause: messages::transfer::pause, pause_of_path: messages::transfer::pause_of_path },
    })?;
    output.emit(&Event::told("ready", &Fields::one("url", &page.url())));
    output.answer(&page.url())?;
    let opens = !arguments.no_open && !output.is_json();
    let is_opened = opens && open_in_browser(&page.url(), |name| std::env::var_os(name));
    output.say(if is_opened { messages::view::BROWSER_OPENED } else { messages::view::OPEN_ADDRESS });
    let (wake, woken) = sync_channel(1);
    signals.wake_by(move || _ = wake.try_send(()));
    while signals.stop().is_none() && woken.recv().is_ok() {}
    let exit = signals.stop().unwrap_or(Exit::Ok).of_service();
    output.emit(&Event::result("view", exit, Outcome::Nothing {}));
    Ok(exit)
}
