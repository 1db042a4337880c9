//! Measures and claims over records made by hand, with answers worked out by hand.

mod builder;
mod claims;
mod kept;
mod language;
mod measures;
