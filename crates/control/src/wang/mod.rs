//! Application-level multipath rate control over TCP. Source: Wang, Wei, Kurose, Towsley, Guo, Peng
//! and Pattipati, "Distributed application-layer rate control for efficient multipath data transfer
//! via TCP" (UConn BECAT/CSE-TR-06-17).
//!
//! A source with a demand sends over k paths at rates of its own choice, each no more than the TCP
//! under it takes. Once per control interval it raises one path, drawn by lot, and keeps the raise
//! if the receiver got it. So load moves to where there is room. Sources that share relays come to
//! the largest sum of rates there is ([`max_flow`]).

mod law;
pub mod max_flow;
mod options;
mod rates;

pub use law::Wang;
pub use options::WangOptions;
pub use rates::RateController;
