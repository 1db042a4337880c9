//! Runs each end of a transfer in its own process: the program starts itself twice. The receiver
//! measures for the given time. Then the parent process stops the sender, and last the receiver: it
//! closes the standard input of each.

use crate::meter::peak_memory;
use crate::{EndTotals, Error, Meter, Rival};
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

/// The first word on the command line of a process that is an end of a transfer.
const END_ARGUMENT: &str = "--end-of-transfer";

/// The measurements of one transfer, from both ends.
#[derive(Clone, Debug)]
pub struct TransferResult {
    /// Payload that the receiver got, in bits per second.
    pub goodput: f64,
    /// Processor time, user and system, per 10^9 bytes: the sender's and the receiver's.
    pub processor: [f64; 2],
    /// The most memory that was resident, in bytes: the sender's and the receiver's.
    pub memory: [u64; 2],
    /// The remarks that each end made about itself.
    pub notes: [String; 2],
}

/// Moves bytes for `duration`, from one new process to another.
///
/// # Errors
///
/// The system refuses something, or an end failed and said why on standard error.
pub fn transfer(rival: &str, duration: Duration) -> Result<TransferResult, Error> {
    let seconds = duration.as_secs_f64().to_string();
    let mut receiver = EndProcess::begin(&["take", rival, &seconds])?;
    let word = receiver.line()?;
    let mut sender = EndProcess::begin(&["give", rival, &word])?;
    let taken = EndReport::read(&receiver.line()?)?;
    let given = EndReport::read(&sender.line_at_end()?)?;
    let note = receiver.line_at_end()?;
    if taken.received == 0 {
        return Err("connected, and nothing moves".into());
    }
    let gigabytes = taken.received as f64 / 1e9;
    Ok(TransferResult {
        goodput: taken.received as f64 * 8.0 / taken.elapsed,
        processor: [given.processor / gigabytes, taken.processor / gigabytes],
        memory: [given.memory, taken.memory],
        notes: [given.note, note],
    })
}

/// Receives or sends, if this process was started as an end of a transfer. Returns whether it was.
///
/// # Errors
///
/// Whatever prevents that transfer.
pub fn is_end() -> Result<bool, Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [END_ARGUMENT, role, rival, word] = words[..] else { return Ok(false) };
    let rival = Rival::by_name(rival).ok_or("no such rival")?;
    let meter = Meter::default();
    match role {
        "take" => {
            let duration = Duration::from_secs_f64(word.parse()?);
            let (word, finish) = rival.take(meter.clone())?;
            say(&word)?;
            let span = meter.measure(|| thread::sleep(duration))?;
            say(&EndReport::new(span, String::new())?.line())?;
            // The sender finds its peer alive until it has stopped too.
            stdin().read_to_end(&mut Vec::new())?;
            say(&finish()?)?;
        }
        _ => {
            let finish = rival.give(word, meter.clone())?;
            let mut ended = Ok(0);
            let span = meter.measure(|| ended = stdin().read_to_end(&mut Vec::new()))?;
            ended?;
            say(&EndReport::new(span, finish()?)?.line())?;
        }
    }
    Ok(true)
}

fn say(line: &str) -> Result<(), Error> {
    writeln!(stdout(), "{line}")?;
    stdout().flush()?;
    Ok(())
}

/// A process that runs one end of a transfer. It is killed when this value is dropped.
struct EndProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl EndProcess {
    fn begin(words: &[&str]) -> Result<Self, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(END_ARGUMENT).args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("no standard output")?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() { Err("an end of the transfer failed".into()) } else { Ok(line.to_owned()) }
    }

    /// Ends the process by closing its standard input. Returns the line that it then prints.
    fn line_at_end(&mut self) -> Result<String, Error> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if self.child.wait()?.success() {
            Ok(line.trim_end().to_owned())
        } else {
            Err("an end of the transfer failed".into())
        }
    }
}

impl Drop for EndProcess {
    fn drop(&mut self) {
        // Nothing happens to one that was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The measurements of one end, as its process prints them.
struct EndReport {
    received: u64,
    elapsed: f64,
    processor: f64,
    memory: u64,
    note: String,
}

impl EndReport {
    fn new(span: EndTotals, note: String) -> Result<Self, Error> {
        let EndTotals { received, elapsed, processor } = span;
        let (elapsed, processor) = (elapsed.as_secs_f64(), processor.as_secs_f64());
        Ok(Self { received, elapsed, processor, memory: peak_memory()?, note })
    }

    fn line(&self) -> String {
        let Self { received, elapsed, processor, memory, note } = self;
        format!("{received} {elapsed} {processor} {memory} {note}")
    }

    fn read(line: &str) -> Result<Self, Error> {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().ok_or("a report is too short");
        Ok(Self {
            received: word()?.parse()?,
            elapsed: word()?.parse()?,
            processor: word()?.parse()?,
            memory: word()?.parse()?,
            note: word().unwrap_or_default().to_owned(),
        })
    }
}
