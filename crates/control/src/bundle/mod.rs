//! The paths of a controller.

#[cfg(feature = "laws")]
mod coupled;
mod path_limit;
mod paths;
mod rate;
pub(crate) mod uncoupled;
mod undo;
pub(crate) mod window;

#[cfg(feature = "laws")]
pub use coupled::{Coupled, CoupledPath, Law};
pub(crate) use path_limit::{INITIAL_PATH_LIMIT, PathLimit};
pub use paths::Paths;
pub(crate) use rate::Rate;
pub use uncoupled::{PathController, UncoupledPaths};
pub use undo::UndoState;
pub use window::{Decrease, GrowthPhase, Window};
