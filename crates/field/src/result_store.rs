//! Rows in a file, which grows by one as each cell ends.

use crate::error::{About as _, Result};
use byway_lab::scoreboard::{Cell, CellRow, Figure, Foreground, Key, rows};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The rows of one program. Rows of other programs in the same file are kept.
pub(crate) struct Store {
    directory: PathBuf,
    program: String,
    file: File,
    rows: BTreeMap<Key, CellRow>,
}

impl Store {
    /// Opens the file in `directory`, or makes it.
    pub(crate) fn open(directory: &Path, program: &str) -> Result<Self> {
        fs::create_dir_all(directory).about(|| directory.display().to_string())?;
        let path = path(directory);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).about(|| path.display().to_string()),
        };
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // Whoever wrote it was killed in the middle of a row.
            file.write_all(b"\n")?;
        }
        let own = rows(&text).into_iter().filter(|row| row.program == program);
        let program = program.to_owned();
        Ok(Self {
            directory: directory.to_owned(),
            program,
            file,
            rows: own.map(|row| (row.key(), row)).collect(),
        })
    }

    /// Takes over the rows of this program from the file in another directory.
    pub(crate) fn import(&mut self, directory: &Path) -> Result<()> {
        let path = path(directory);
        let text = fs::read_to_string(&path).about(|| path.display().to_string())?;
        let own = rows(&text).into_iter().filter(|row| row.program == self.program);
        for row in own.filter(|row| !self.rows.contains_key(&row.key())).collect::<Vec<_>>() {
            self.add(row)?;
        }
        Ok(())
    }

    /// The file with the rows.
    pub(crate) fn file(&self) -> PathBuf {
        path(&self.directory)
    }

    /// Whether the store has a row for this key.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.rows.contains_key(key)
    }

    /// Adds a row, and appends it to the file.
    pub(crate) fn add(&mut self, row: CellRow) -> Result<()> {
        let mut line = serde_json::to_vec(&row)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.rows.insert(row.key(), row);
        Ok(())
    }

    /// The stored rows of `cells`, in the order of the cells.
    pub(crate) fn rows(&self, cells: &[Cell]) -> Vec<CellRow> {
        cells.iter().filter_map(|cell| self.rows.get(&cell.key()).cloned()).collect()
    }

    /// Writes rows as a table for spreadsheets.
    pub(crate) fn write_table(&self, rows: &[CellRow]) -> Result<()> {
        let file = self.directory.join("rows.csv");
        fs::write(&file, csv(rows)).about(|| file.display().to_string())
    }

    /// Writes the picture.
    pub(crate) fn write_picture(&self, svg: &str) -> Result<()> {
        let file = self.directory.join("heat.svg");
        fs::write(&file, svg).about(|| file.display().to_string())
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("rows.jsonl")
}

/// The rows as comma-separated values. `inf` means never. An empty field is undefined.
fn csv(rows: &[CellRow]) -> String {
    let mut text = "line,half,beside,transfers,among,law,seed".to_owned();
    Figure::ALL.iter().for_each(|figure| text += &format!(",{}", figure.name()));
    text += ",packets,seconds,cpu_seconds,trace,commit,cell\n";
    for row in rows {
        let half = format!("{:?}", row.half).to_lowercase();
        let _ = write!(
            text,
            "{},{half},{},{},{},{},{}",
            row.line, row.foreground, row.transfers, row.among, row.law, row.seed
        );
        let foreground = Foreground::ALL.into_iter().find(|foreground| foreground.name() == row.foreground);
        for figure in Figure::ALL {
            let value = foreground.and_then(|foreground| figure.of(&row.figures, foreground));
            text += &value.map_or_else(|| ",".to_owned(), |value| format!(",{value:.4}"));
        }
        let _ = writeln!(
            text,
            ",{},{},{:.3},{},{},{}",
            row.packets, row.seconds, row.cpu_seconds, row.trace, row.commit, row.cell
        );
    }
    text
}
