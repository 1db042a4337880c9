//! The paths of a controller.

mod coupled;
mod path_limit;
mod paths;
mod rate;
mod uncoupled;
mod undo;
mod window;

pub use coupled::{Coupled, CoupledPath, Law};
pub(crate) use path_limit::{INITIAL_PATH_LIMIT, PathLimit};
pub use paths::Paths;
pub(crate) use rate::Rate;
pub use uncoupled::{PathController, UncoupledPaths};
pub use undo::UndoState;
pub use window::{Decrease, GrowthPhase, Window};
