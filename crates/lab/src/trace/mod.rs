//! Traces for other tools: every path by sample as JSON lines or qlog, every datagram as pcapng.

pub mod jsonl;
pub mod pcapng;
pub mod qlog;
