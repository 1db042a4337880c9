//! A lane to measure with.
use byway_forward_host::Listening;
use byway_lane::RunningLane;
use std::time::{Duration, Instant};
fn main() {
    let ports = std::env::args().skip(1).map(|it| it.parse().unwrap()).collect();
    let lane = RunningLane::start(Listening::begin(ports, &[]).unwrap(), 1000).unwrap();
    let begun = Instant::now();
    let verbose = std::env::var("LANE_TRACE").is_ok();
    loop {
        if let Some(event) = lane.next(Duration::from_millis(100)).unwrap() {
            eprintln!("{event:?}");
        }
        if verbose {
            eprintln!("{:.1} {:?}", begun.elapsed().as_secs_f64(), lane.figures());
        }
    }
}
