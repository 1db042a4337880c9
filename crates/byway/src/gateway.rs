//! A gateway on this host: its configuration, what it installs in the kernel, and the running of it.

pub mod config;
