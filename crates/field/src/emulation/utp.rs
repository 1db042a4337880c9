//! Transfers by somebody else's LEDBAT: libtorrent's µTP, through its Python binding.

use super::process::{HelperProcess, Started, later, noise_file, ready};
use super::report::{TransferReport, of_byway};
use super::run_lab::RunLab;
use super::transfer_setup::TransferSetup;
use crate::error::{Error, OrFailed as _, Result};
use byway_lab::setup::{Demand, Transfer};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

/// The plan's name of this controller, with `carrier = "tcp"`.
pub(super) const CONTROLLER_NAME: &str = "ledbat";
const UTP_SCRIPT: &str = include_str!("utp.py");
/// The commands for Python. The system's own comes first, as it has the modules of the system's
/// packages.
const PYTHON_COMMANDS: [&str; 2] = ["/usr/bin/python3", "python3"];

/// A Python that knows libtorrent.
pub(super) fn python() -> Option<&'static str> {
    PYTHON_COMMANDS.into_iter().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import libtorrent"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// An error if the transfer cannot be made with libtorrent.
pub(super) fn check(transfer: &Transfer) -> Result<(), String> {
    if !matches!(transfer.demand, Demand::Size(_)) {
        return Err("a torrent needs a size".into());
    }
    python().map(drop).ok_or_else(|| "ledbat is libtorrent's: it needs python3-libtorrent".into())
}

/// Starts libtorrent as a seed at the sender, and as a client without data at the receiver.
pub(super) fn start(
    site: &RunLab,
    transfer: &Transfer,
    run: &TransferSetup<'_>,
    port: u16,
) -> Result<Started> {
    let python = python().or_failed(|| "no python3 that has libtorrent")?;
    let Demand::Size(bytes) = transfer.demand else {
        return Err(Error::Failed(format!("{}: no size", transfer.name)));
    };
    let directory = site.directory.path().join(format!("{}-in", transfer.name));
    fs::create_dir_all(&directory)?;
    let torrent = site.directory.path().join(format!("{}.torrent", transfer.name));
    let (file, torrent) = (noise_file(site, bytes)?, torrent.to_string_lossy().into_owned());
    let (from, to) = (site.address(run.from)?, site.address(run.to)?);
    let port = port.to_string();
    let seed = [python, "-c", UTP_SCRIPT, "seed", &file.to_string_lossy(), &from, &port, &torrent];
    let (seed, _) = ready(site.on(run.from, &seed))?;
    let leech =
        [python, "-c", UTP_SCRIPT, "leech", &directory.to_string_lossy(), &to, &port, &torrent, &from, &port];
    let mut child = site.on(run.to, &leech).stdin(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (mut told, said) = (child.stdin.take().or_failed(|| "no input")?, child.stdout.take());
    let leech = HelperProcess(child);
    let mut lines = BufReader::new(said.or_failed(|| "no output")?).lines();
    lines.next().or_failed(|| "it is not ready")??;
    let (begins, lasts) = (run.begins, run.lasts);
    let reports = later(begins, move || {
        writeln!(told, "begin")?;
        let mut report = TransferReport::default();
        for line in lines {
            let event: Value = serde_json::from_str(&line?)?;
            let at = begins.elapsed();
            of_byway(&event, at.as_secs_f64(), &mut report);
            if report.steps.last().is_some_and(|step| step.1 >= bytes) {
                report.finished = Some(at.as_secs_f64());
                break;
            }
            if at > lasts {
                break;
            }
        }
        drop(leech);
        report.paths = vec![("direct".into(), report.steps.clone())];
        Ok(report)
    })?;
    Ok((vec![seed], reports))
}
