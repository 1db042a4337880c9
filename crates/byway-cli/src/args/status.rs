//! The arguments of `byway status` and `byway limit`.

use byway_transfer::units::RateLimits;
use clap::Args;

/// The word for what a process was started with.
const OWN_LIMIT_WORD: &str = "own";

/// `byway status`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/status.txt").trim_end())]
pub struct Status {
    /// Show it anew each second, until SIGINT [default: once]
    #[arg(short, long)]
    pub watch: bool,
}

/// `byway limit`
#[derive(Clone, Debug, Args)]
#[command(before_help = include_str!("examples/limit.txt").trim_end())]
pub struct Limit {
    /// `RATE`, `UP:DOWN` or `off`, as with --bwlimit, or `own` for what each was started with. A
    /// name before it means one peer
    #[arg(value_name = "[NAME] RATE", num_args = 1..=2, required = true)]
    pub words: Vec<String>,
}

impl Limit {
    /// The peer and the limits. `None`: what each process was started with.
    ///
    /// # Errors
    /// The last word is no rate.
    pub fn read(&self) -> Result<(Option<&str>, Option<RateLimits>), byway_transfer::units::UnitError> {
        let rate = self.words.last().map(String::as_str).unwrap_or_default();
        let peer = self.words.first().filter(|_| self.words.len() > 1);
        let limits = if rate == OWN_LIMIT_WORD { None } else { Some(rate.parse()?) };
        Ok((peer.map(|peer| peer.trim_end_matches(':')), limits))
    }
}
