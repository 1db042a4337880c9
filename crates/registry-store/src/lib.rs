//! Runs registries: on sockets, with a store for what they keep, and with tools for their
//! operators.
//!
//! | module | what it is |
//! |---|---|
//! | [`operator_store`] | how an operator opens a store by its name, and the words in it |
//! | `store_operations` | what every store can do for its operator |
//! | [`sqlite`] | one file, one writer |
//! | `operator_http` | pages for operators, over HTTP on loopback |
//! | [`operator_view`] | what an operator is shown |
//! | `postgres` | a data base that several registries share |
//! | [`registry_process`] | the machine of `byway-registry` on sockets, with a thread for its store |

mod column_values;
#[cfg(feature = "http")]
pub mod operator_http;
pub mod operator_store;
pub mod operator_view;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod registry_process;
pub mod sqlite;
mod store_operations;

pub use operator_store::{Issue, OperatorStore, StoreError, open};
pub use registry_process::{RegistryError, RegistryPlan, Running};
