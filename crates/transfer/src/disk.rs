//! The threads that read and write files, so that the event loop never waits for a disk.

pub(crate) mod file_reader;
pub(crate) mod file_thread;
pub(crate) mod file_writer;
pub(crate) mod thread_channel;
