//! A lab for one run, and how programs are started on its hosts.

use crate::error::{Error, OrFailed as _, Result};
use crate::labs::place;
use byway_emulate::Lab;
use std::fs;
use std::io::{PipeWriter, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Everything that a run needs: the lab, the programs and directories.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'a> {
    /// The path of byway's own program.
    pub program: &'a Path,
    /// The name of the plan, as for `byway lab up`.
    pub what: &'a str,
    /// The directory of experiments. `None`: those in the program.
    pub experiments: Option<&'a Path>,
}

/// The lab of one run, and a directory for the files of its programs. Dropping it removes both. If
/// this process is killed, the lab ends too.
pub(super) struct RunLab {
    pub(super) program: PathBuf,
    pub(super) lab: Lab,
    _owner: PipeWriter,
    pub(super) directory: tempfile::TempDir,
}

impl RunLab {
    /// Builds the lab of the variant with these axes.
    pub(super) fn up(ground: RunContext<'_>, axes: &[String], seed: u64) -> Result<Self> {
        let RunContext { program, what, experiments } = ground;
        let lab = place().lab(&format!("run-{}", std::process::id()));
        let mut command = Command::new(program);
        let seed = seed.to_string();
        command.args(["--quiet", "lab", "up", what, "--owned", "--name", &lab.name, "--seed", &seed]);
        command.args(axes.iter().flat_map(|axis| ["--sweep", axis.as_str()]));
        if let Some(directory) = experiments {
            command.arg("--experiments").arg(directory);
        }
        let (owned, owner) = pipe()?;
        let output = command.stdin(owned).output()?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(told.trim().trim_start_matches("byway: ")));
        }
        Ok(Self { program: program.to_owned(), lab, _owner: owner, directory: tempfile::tempdir()? })
    }

    /// A program on a host.
    pub(super) fn on(&self, host: &str, program: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["lab", "exec", "--lab", &self.lab.name, host, "--"]).args(program);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns byway's state directory on a host.
    pub(super) fn state(&self, host: &str, role: &str) -> Result<PathBuf> {
        let state = self.directory.path().join(format!("{role}-{host}"));
        fs::create_dir_all(&state)?;
        Ok(state)
    }

    /// Makes a `byway` command on a host, with its own state directory.
    pub(super) fn byway(&self, host: &str, role: &str, arguments: &[&str]) -> Result<Command> {
        let state = self.state(host, role)?;
        let program = self.program.to_string_lossy();
        let mut command = self.on(host, &[&[&*program, "--json"], arguments].concat());
        command.env("BYWAY_STATE_DIR", state);
        Ok(command)
    }

    /// The address of a host.
    pub(super) fn address(&self, host: &str) -> Result<String> {
        let record = self.lab.record()?;
        let found = record.hosts.iter().find(|known| known.name == host);
        Ok(found.or_failed(|| format!("there is no host {host}"))?.v4.to_string())
    }
}

/// Runs scripts on hosts, which set routes.
pub(super) fn set_routes<H: AsRef<str>>(
    site: &RunLab,
    scripts: impl IntoIterator<Item = (H, String)>,
) -> Result<()> {
    for (host, script) in scripts {
        let host = host.as_ref();
        let output = site.on(host, &["sh", "-ec", &script]).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(format!("routes at {host}: {}", said.trim())));
        }
    }
    Ok(())
}

impl Drop for RunLab {
    fn drop(&mut self) {
        let _ = byway_emulate::end(&self.lab);
    }
}
