//! Programs that run beside a run, and the files that they send.

use super::report::TransferReport;
use super::run_lab::RunLab;
use crate::error::{About as _, Error, OrFailed as _, Result};
use byway_sim::Random;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

/// A server process, killed when this value is dropped.
pub(super) struct HelperProcess(pub(super) Child);

impl Drop for HelperProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Server processes, and the thread that will return the transfer's report.
pub(super) type Started = (Vec<HelperProcess>, JoinHandle<Result<TransferReport>>);

/// Starts a thread that waits until `begins`, and then does `work`.
pub(super) fn later<T: Send + 'static>(
    begins: Instant,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<JoinHandle<Result<T>>> {
    let thread = std::thread::Builder::new().name("transfer".into());
    Ok(thread.spawn(move || {
        std::thread::sleep(begins.saturating_duration_since(Instant::now()));
        work()
    })?)
}

/// Starts a program, and waits for its line of JSON that says that it is ready.
pub(super) fn ready(mut command: Command) -> Result<(HelperProcess, Value)> {
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let said = child.stdout.take().or_failed(|| "no output")?;
    let helper = HelperProcess(child);
    let mut lines: BufReader<ChildStdout> = BufReader::new(said);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let ready: Value = serde_json::from_str(&line).about(|| format!("it said {line:?}"))?;
    if ready["event"] != "ready" {
        return Err(Error::failed(ready["error"].as_str().unwrap_or("it is not ready")));
    }
    // Whatever it says later is not waited for, and must not stop it.
    std::thread::Builder::new()
        .name("drain".into())
        .spawn(move || std::io::copy(&mut lines, &mut std::io::sink()))?;
    Ok((helper, ready))
}

/// Starts a program, and waits for any line that says that it is ready.
pub(super) fn said_ready(mut command: Command) -> Result<HelperProcess> {
    let mut child = command.spawn()?;
    let said = child.stdout.take().or_failed(|| "no output")?;
    let helper = HelperProcess(child);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    if line.trim() == "ready" { Ok(helper) } else { Err(Error::failed("a server is not ready")) }
}

pub(super) fn text(ready: &Value, key: &str) -> Result<String> {
    Ok(ready[key].as_str().or_failed(|| format!("it names no {key}"))?.to_owned())
}

/// Returns a file of this size. Transfers of one size share one file, so that eight of them do not
/// fill the disk.
pub(super) fn noise_file(site: &RunLab, bytes: u64) -> Result<PathBuf> {
    let file = site.directory.path().join(format!("noise-{bytes}"));
    if !file.exists() {
        noise(&file, bytes)?;
    }
    Ok(file)
}

/// A file without holes or repetitions.
fn noise(file: &Path, bytes: u64) -> Result<()> {
    let mut random = Random::component(bytes, "noise");
    let mut to = std::io::BufWriter::new(File::create(file)?);
    let mut block = [0; 4096];
    let mut left = bytes;
    while left > 0 {
        random.fill(&mut block);
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        to.write_all(block.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    Ok(to.flush()?)
}
