//! A program whose events are kept.

use crate::common::machine::{PATIENCE, wait_for};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Child;

/// A process whose events go to a file. Killed if the test ends before it.
pub struct Process {
    pub child: Child,
    pub said: PathBuf,
}

impl Process {
    /// The events of this name that it said so far.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(&self.said).unwrap();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == name).collect()
    }

    /// The first event of this name that it says, once it does.
    #[track_caller]
    pub fn event(&self, name: &str) -> Value {
        let found = wait_for(PATIENCE, || self.events(name).into_iter().next());
        found.unwrap_or_else(|| panic!("no {name} in {}", fs::read_to_string(&self.said).unwrap()))
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The code that it ends with.
    pub fn code(&mut self) -> Option<i32> {
        wait_for(PATIENCE, || self.child.try_wait().unwrap())?.code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
