//! Application-level multipath rate control over TCP. Source: Wang, Wei, Kurose, Towsley, Guo, Peng
//! and Pattipati, "Distributed application-layer rate control for efficient multipath data transfer
//! via TCP" (UConn BECAT/CSE-TR-06-17).
//!
//! A source wants to send at a given rate, its demand, over k paths, each a TCP connection. In each
//! control interval the source raises the rate of one random path. It takes the raise back if the
//! receiver did not get data at the raised rate. So load moves to paths with room. Sources that
//! share relays reach the largest possible sum of rates ([`max_flow`]).

mod law;
pub mod max_flow;
mod options;
mod rates;

pub use law::Wang;
pub use options::WangOptions;
pub use rates::RateController;
