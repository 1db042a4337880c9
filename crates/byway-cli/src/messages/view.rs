//! Messages of `byway view`. The texts of the page are in `byway_view`.

pub const BROWSER_OPENED: &str =
    "a browser opens this address, which is good for one visit; Ctrl-C ends the page";
pub const OPEN_ADDRESS: &str =
    "open this address in a browser of this host: it is good for one visit; Ctrl-C ends the page";
