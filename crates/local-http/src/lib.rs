//! An HTTP server on a loopback address, for programs and browsers of this host. It serves any
//! [`axum::Router`].
//!
//! A browser of this host also shows pages of other sites. None of them can read what is served
//! here, whether it names a loopback address or a DNS name that leads to one.
//!
//! | module | what it is |
//! |---|---|
//! | [`local_server`] | connections, their limits, and the thread that serves them |
//! | `request_checks` | which requests are answered, and what browsers are told of the answers |
//! | [`open_metrics`] | figures as Prometheus reads them |

pub mod local_server;
pub mod open_metrics;
mod request_checks;

pub use local_server::{LocalServer, ServeError, ServerLimits};
