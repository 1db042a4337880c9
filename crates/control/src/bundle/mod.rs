//! The paths of a controller.

mod each;
mod paths;
mod undo;

pub use each::{Each, Single};
pub use paths::Paths;
pub use undo::Memento;
