//! Application-level multipath rate control over TCP. Source: Wang, Wei, Kurose, Towsley, Guo, Peng
//! and Pattipati, "Distributed application-layer rate control for efficient multipath data transfer
//! via TCP" (UConn BECAT/CSE-TR-06-17).
//!
//! A source with a demand sends over k paths at rates that it chooses, each at most the rate of the
//! TCP connection under the path. In each control interval it raises the rate of one random path,
//! and keeps the raise if the receiver got the data. So load moves to paths with room. Sources that
//! share relays reach the largest possible sum of rates ([`max_flow`]).

mod law;
pub mod max_flow;
mod options;
mod rates;

pub use law::Wang;
pub use options::WangOptions;
pub use rates::RateController;
