//! Laws that papers publish, kept word by word. The papers' claims are checked with them. No class
//! of transfers uses them.

pub mod harp;
