//! The links of a lab as a table to print.

use byway_emulate::LinkStatus;
use byway_lab::expect::table::{Grid, GridRow};

/// A row for each link.
#[must_use]
pub fn table(links: &[LinkStatus]) -> Grid {
    let headings =
        ["link", "packets", "delivered", "queue full", "managed", "lost", "down", "waiting", "mean wait"];
    let row = |link: &LinkStatus| {
        let cells = vec![
            link.link.clone(),
            link.packets.to_string(),
            link.delivered.to_string(),
            link.dropped_queue.to_string(),
            link.dropped_managed.to_string(),
            link.dropped_loss.to_string(),
            link.dropped_other.to_string(),
            link.waiting.to_string(),
            format!("{:.2} ms", link.mean_wait_ms),
        ];
        GridRow { cells, notes: Vec::new() }
    };
    Grid { headings: headings.map(str::to_owned).into(), keys: 1, rows: links.iter().map(row).collect() }
}
