//! Files of rows: one for each task, with a line for each run.

use super::swept_plan::Sweep;
use crate::error::{About as _, Result};
use byway_lab::measure::SharedTexts;
use byway_lab::sweep::{Row, RowError};
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The end of the name of a file of rows.
const ROWS_EXTENSION: &str = "ndjson";
/// The most bytes of a line. A run with 100,000 requests that a measure compares has some 5 MB.
const MAX_LINE_LEN: u64 = 64 << 20;

/// The destination of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowTarget {
    /// A directory, in which each task has a file of its own.
    Directory(PathBuf),
    /// To standard output.
    Output,
}

/// Writes the file `name` in `directory`: whole, or not at all.
pub(super) fn write(directory: &Path, name: &str, lines: &[String]) -> Result<()> {
    let about = || directory.join(name).display().to_string();
    fs::create_dir_all(directory).about(about)?;
    let mut file = tempfile::Builder::new()
        .prefix(".byway-rows-")
        .permissions(fs::Permissions::from_mode(0o666)) // less what the umask takes
        .tempfile_in(directory)
        .about(about)?;
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    file.write_all(text.as_bytes()).about(about)?;
    file.as_file().sync_all().about(about)?;
    // Beside the file as it is called: two paths of one directory may lead through two mounts.
    let path = file.path().with_file_name(name);
    file.persist(path).map_err(|error| error.error).about(about)?;
    Ok(())
}

/// The files of rows in `places`: files as they are, and of directories all that end in `.ndjson`,
/// by name.
pub(super) fn files(places: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for place in places {
        if !place.is_dir() {
            files.push(place.clone());
            continue;
        }
        let about = || place.display().to_string();
        for entry in fs::read_dir(place).about(about)? {
            let path = entry.about(about)?.path();
            if path.extension().is_some_and(|extension| extension == ROWS_EXTENSION) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A line of a file that is no row of this sweep, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedLine {
    pub(super) number: usize,
    pub(super) why: String,
}

impl Sweep {
    /// Reads the rows of a file. `take` gets the rows of this sweep with their lines, `refuse` the
    /// lines that are none.
    pub(super) fn read_rows(
        &self,
        file: &Path,
        texts: &mut SharedTexts,
        mut take: impl FnMut(&str, Row) -> Result<()>,
        mut refuse: impl FnMut(RefusedLine),
    ) -> Result<()> {
        let about = || file.display().to_string();
        // To open a FIFO waits for whoever writes to it.
        if !fs::metadata(file).about(about)?.is_file() {
            refuse(RefusedLine { number: 1, why: "it is no regular file".to_owned() });
            return Ok(());
        }
        let mut reader = BufReader::new(File::open(file).about(about)?);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let mut limited = reader.by_ref().take(MAX_LINE_LEN);
            if limited.read_until(b'\n', &mut line).about(about)? == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end();
            match Row::read(text, texts).map_err(|error: RowError| error.to_string()) {
                Ok(row) if row.identity == self.identity => take(text, row)?,
                Ok(row) => refuse(RefusedLine { number, why: self.stranger(&row) }),
                Err(why) => refuse(RefusedLine { number, why }),
            }
        }
        Ok(())
    }

    /// Why a row is not of this sweep.
    fn stranger(&self, row: &Row) -> String {
        let (own, other) = (&self.identity, &row.identity);
        if own.plan == other.plan {
            format!("of another program ({}; this is {})", other.program, own.program)
        } else {
            format!("of another plan ({}; this is {})", other.plan, own.plan)
        }
    }
}

/// Prints lines.
pub(super) fn print(lines: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}
