//! Application-level multipath rate control over TCP (Wang et al., "Distributed application-layer
//! rate control for efficient multipath data transfer via TCP", UConn BECAT/CSE-TR-06-17).
//!
//! A source raises one path's rate per interval, and takes the raise back if too little arrives.

#[cfg(feature = "laws")]
mod law;
#[cfg(feature = "laws")]
pub mod max_flow;
mod options;
mod rates;

#[cfg(feature = "laws")]
pub use law::Wang;
pub use options::WangOptions;
pub use rates::RateController;
