//! Opens qlog files of byway with the reader of another project. Each figure must be that of
//! `trace.jsonl` (`lab DIRECTORY`) or of the events of `--json` (`send FILE EVENTS`).

mod lab;
mod replay;
mod send;

use std::path::Path;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let checked = match words.as_slice() {
        ["lab", directory] => lab::check(Path::new(directory))?,
        ["send", file, events] => send::check(Path::new(file), Path::new(events))?,
        _ => return Err("expected `lab DIRECTORY` or `send FILE EVENTS`".to_owned()),
    };
    println!("{checked} figures of qlog files are as they are told elsewhere");
    Ok(())
}
