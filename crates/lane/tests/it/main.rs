//! A lane on loopback.

mod programs;
