//! The paths of a controller.

mod coupled;
mod each;
mod paths;
mod rate;
mod reach;
mod undo;
mod window;

pub use coupled::{Coupled, Law, Member};
pub use each::{Each, Single};
pub use paths::Paths;
pub(crate) use rate::Rate;
pub(crate) use reach::{Reach, START};
pub use undo::Memento;
pub use window::{Decrease, Phase, Window};
