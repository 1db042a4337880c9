//! The inputs from which a controller is made.

use super::option_reader::OptionReader;

/// The kind of sender that is governed. Hosts differ in how large a window they begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderKind {
    /// A session of byway's.
    Session,
    /// The simulator's TCP hosts.
    Tcp {
        /// The initial window of loss-based controllers in packets, unless `initial` is set.
        initial_window: u32,
    },
    /// Reference TCP hosts that do as Linux does.
    Linux {
        /// The initial window of loss-based controllers in packets, unless `initial` is set.
        initial_window: u32,
    },
}

/// The inputs from which a controller is made.
#[derive(Debug)]
pub(super) struct ControllerRequest<'a> {
    /// The name of the controller.
    pub name: &'static str,
    /// The options that were given, and the controller's known options.
    pub options: OptionReader<'a>,
    /// The kind of sender that is governed.
    pub sender: SenderKind,
    /// The seed of the controller's random numbers.
    pub seed: u64,
}
