//! The paths of a controller.

mod coupled;
mod each;
mod paths;
mod undo;
mod window;

pub use coupled::{Coupled, Law, Member};
pub use each::{Each, Single};
pub use paths::Paths;
pub use undo::Memento;
pub use window::{Decrease, Phase, Window};
