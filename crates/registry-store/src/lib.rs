//! Registries that run: what they keep, on sockets and in a store, and how an operator looks after them.
//!
//! | module | what it is |
//! |---|---|
//! | [`keeper`] | what every store can do for its operator, and how one is opened by its name |
//! | [`sqlite`] | one file, one writer |
//! | `operators` | pages for operators, over HTTP on loopback |
//! | [`report`] | what an operator is shown |
//! | `postgres` | a data base that several registries share |
//! | [`host`] | the machine of `byway-registry` on sockets, with a thread for its store |

pub mod host;
pub mod keeper;
#[cfg(feature = "http")]
pub mod operators;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod report;
mod rows;
pub mod sqlite;

pub use host::{Plan, RegistryError, Running};
pub use keeper::{Issue, Keeper, StoreError, open};
