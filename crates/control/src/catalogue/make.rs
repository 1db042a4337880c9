//! Makes the controllers that every build has. What each of them leaves open is asked of the
//! options.

use super::request::{ControllerRequest, SenderKind};
use crate::background::Background;
use crate::bundle::UncoupledPaths;
use crate::mpath::{Growth, MPath, MPathOptions};
use crate::newreno::{NewReno, NewRenoOptions};
use crate::{Controller, Opened, PathController};
use alloc::boxed::Box;

pub(super) fn background(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    Box::new(Background::new(request.name))
}

pub(super) fn mpath(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    mpath_with(request, MPathOptions::PRODUCTION)
}

pub(super) fn newreno(request: &mut ControllerRequest<'_>) -> Box<dyn Controller> {
    let options = reno(request);
    each(request.name, move |opened| NewReno::with_options(opened, options))
}

/// mPath, whose options are `usual` unless the request says otherwise.
pub(super) fn mpath_with(request: &mut ControllerRequest<'_>, usual: MPathOptions) -> Box<dyn Controller> {
    let (mut options, read) = (usual, &mut request.options);
    read.part("alpha", &mut options.alpha);
    read.part("beta", &mut options.beta);
    read.packets("initial", &mut options.initial);
    read.packets("initial_proxied", &mut options.initial_proxied);
    read.switch("start_everywhere", &mut options.start_everywhere);
    read.count("open_at_start", &mut options.open_at_start, 1e6);
    read.switch("ask_once_probed", &mut options.ask_once_probed);
    read.switch("last_lost", &mut options.last_lost);
    read.small("evidence", &mut options.evidence);
    read.small("patience", &mut options.patience);
    let mut lot = options.growth == Growth::Lot;
    read.switch("lot", &mut lot);
    options.growth = if lot { Growth::Lot } else { Growth::Shares };
    Box::new(MPath::new(request.name, options, request.seed))
}

/// A controller that runs on every path by itself.
pub(super) fn each<C: PathController + 'static>(
    name: &'static str,
    make: impl Fn(&Opened) -> C + Send + 'static,
) -> Box<dyn Controller> {
    Box::new(UncoupledPaths::new(name, make))
}

/// Returns the initial window and L of RFC 3465, in packets. `session`: the values for a session.
pub(super) fn start(request: &mut ControllerRequest<'_>, session: (f64, f64)) -> (f64, f64) {
    let (mut initial, mut limit) = match request.sender {
        SenderKind::Session => session,
        SenderKind::Tcp { initial_window } => (f64::from(initial_window), NewRenoOptions::TCP.limit),
        // Linux counts all that an ACK tells of.
        SenderKind::Linux { initial_window } => (f64::from(initial_window), 1e6),
    };
    request.options.packets("initial", &mut initial);
    request.options.packets("limit", &mut limit);
    (initial, limit)
}

/// Returns the options of NewReno, also for couplings of NewReno paths.
pub(super) fn reno(request: &mut ControllerRequest<'_>) -> NewRenoOptions {
    let NewRenoOptions { initial, limit } = NewRenoOptions::BYWAY;
    let (initial, limit) = start(request, (initial, limit));
    NewRenoOptions { initial, limit }
}
