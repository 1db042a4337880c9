//! How fast the simulator is on this machine.

use crate::error::{About as _, Error, OrFailed as _, Result};
use byway_lab::bench::{self, Bench, Moved};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The benches whose name is `name` or, if there is none, contains it; all without a name.
///
/// # Errors
/// There is none.
pub fn named(name: Option<&str>) -> Result<Vec<Bench>> {
    let mut benches = bench::all();
    if let Some(name) = name {
        let exact = benches.iter().any(|bench| bench.id == name);
        benches.retain(|bench| if exact { bench.id == name } else { bench.id.contains(name) });
    }
    if benches.is_empty() {
        let known: Vec<_> = bench::all().iter().map(|bench| bench.id).collect();
        return Err(Error::NotFound(format!("no such bench: there are {}", known.join(", "))));
    }
    Ok(benches)
}

/// Runs a bench once, for so many simulated seconds, and says how many packet hops that were.
///
/// # Errors
/// Its world cannot be built.
pub fn once(bench: &Bench, seconds: u32) -> Result<u64> {
    Ok(bench.run_for(seconds).about(|| bench.id)?.hops)
}

/// Runs a bench on one core until its time is over, and says how long the best of its runs took: what disturbs a run only slows it.
///
/// # Errors
/// Its world cannot be built.
pub fn best(bench: &Bench, seconds: f64) -> Result<(f64, Moved)> {
    let run = || {
        let before = Instant::now();
        let moved = bench.run().about(|| bench.id)?;
        Ok::<_, Error>((before.elapsed().as_secs_f64(), moved))
    };
    let begun = Instant::now();
    let mut best = run()?;
    while begun.elapsed().as_secs_f64() < seconds {
        let next = run()?;
        if next.0 < best.0 {
            best = next;
        }
    }
    Ok(best)
}

/// The instructions of a packet hop: what two runs of different length differ by, so the world's building does not count. `program`
/// is one that answers `lab bench NAME --once SECONDS` with [`once`].
///
/// # Errors
/// There is no valgrind, or it did not count.
pub fn instructions_per_hop(bench: &Bench, program: &Path) -> Result<f64> {
    let [short, long] = bench.brief();
    let (less, few) = count(bench.id, short, program)?;
    let (more, many) = count(bench.id, long, program)?;
    Ok((more - less) / (many - few))
}

/// Instructions and hops of a run in a process of its own under callgrind.
fn count(id: &str, seconds: u32, program: &Path) -> Result<(f64, f64)> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    valgrind.args(["lab", "bench", id, "--once", &seconds.to_string()]);
    let missing = "instructions are counted by valgrind, which cannot be run here: install it, or leave out --instructions";
    let output = valgrind.output().about(|| missing)?;
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| number(line.split_once("Collected : ")?.1));
    let hops = number(&String::from_utf8_lossy(&output.stdout));
    collected
        .zip(hops)
        .or_failed(|| format!("valgrind did not count: {}", told.lines().last().unwrap_or_default()))
}
