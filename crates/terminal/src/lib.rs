//! Text on a terminal: tables and paragraphs that are as wide as the screen, in which no name of a
//! peer does harm.

mod ask;
pub mod line_wrap;
mod status_lines;
mod table;

pub use ask::answer_line;
pub use line_wrap::printable;
pub use status_lines::Painter;
pub use table::{Align, Table};
