//! The processes of this host, and their ended transfers. Each process has a [`StatusBoard`] with a
//! socket in the runtime directory. The socket answers one request per connection, a line of JSON,
//! with a line of JSON. [`ask_all`] asks every process. Transfers that ended are lines of a
//! [`History`].

mod history;
mod query;
mod request;
mod runtime_directory;
mod status_board;
mod status_socket;

pub use history::{History, HistoryEntry};
pub use query::{Answer, NoAnswer, ask_all, ask_each};
pub use request::Request;
pub use runtime_directory::RuntimeDirectory;
pub use status_board::{ProcessStatus, StatusBoard};
pub use status_socket::StatusSocket;

#[cfg(test)]
mod tests;
