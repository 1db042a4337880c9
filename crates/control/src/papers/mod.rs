//! Laws that papers publish, kept word by word: what the papers' claims are held against. No class of transfers uses them.

pub mod harp;
