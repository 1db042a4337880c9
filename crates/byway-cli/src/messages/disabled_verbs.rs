//! Messages about verbs that this build does not have.

#[cfg(not(feature = "gateway"))]
pub const NO_GATEWAY: &str = "this build has no gateway: build byway with its feature `gateway`";
#[cfg(not(feature = "registry"))]
pub const NO_REGISTRY: &str =
    "this build has no registry: build byway with its feature `registry`, or install the package byway-full";
#[cfg(not(feature = "view"))]
pub const NO_VIEW: &str =
    "this build has no page: build byway with its feature `view`, or use `byway status --watch`";
#[cfg(not(feature = "view"))]
pub const NO_RELAY_PAGES: &str = "this build has no pages of relays: build byway with its feature `view`";
#[cfg(not(feature = "lab"))]
pub const NO_LAB: &str =
    "this build has no laboratory: build byway with its feature `lab`, or install the package byway-full";
#[cfg(not(feature = "lane"))]
pub const NO_LANE: &str = "this build has no lane: build byway with its feature `lane`";
#[cfg(not(feature = "demo"))]
pub const NO_DEMO: &str = "this build has no demo: build byway with its feature `demo`";
#[cfg(not(feature = "pairing"))]
pub const NO_PAIRING: &str = "this build pairs no hosts: build byway with its feature `pairing`";
#[cfg(not(feature = "help"))]
pub const NO_PAGES: &str =
    "this build has no completions and no manual pages: build byway with its feature `help`";
