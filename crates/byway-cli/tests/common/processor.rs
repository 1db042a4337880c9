//! Processor time of the processes that a test or bench started.

/// Processor time in seconds of all child processes that have ended and were waited for. Fields 16
/// and 17 of `/proc/self/stat` (proc(5)) hold it, in ticks of 10 ms.
pub fn children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[13].parse::<f64>().unwrap() + fields[14].parse::<f64>().unwrap()) / 100.0
}
