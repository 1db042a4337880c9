//! Makes the answer to a question for relays.

use crate::grant_minting;
use crate::message::{Listed, MAX_RELAYS, RelayList, RelayQuery};
use crate::relay_directory::RelayDirectory;
use crate::store::{Epoch, LAST_EPOCH_SECONDS, WordRow};
use byway_wire::Instant;

/// Returns the relays for a holder of a registry word whose draw has this seed. `now` is given by
/// both clocks.
pub(super) fn list(
    directory: &mut RelayDirectory,
    epoch: &Epoch,
    word: &WordRow,
    ask: &RelayQuery,
    seed: u64,
    (now, unix): (Instant, u64),
) -> RelayList {
    let last = Epoch {
        number: epoch.number.saturating_sub(1),
        began: epoch.last_until.saturating_sub(grant_minting::EPOCH_LIFE + LAST_EPOCH_SECONDS),
        last_until: 0,
    };
    let most = usize::from(ask.most).min(MAX_RELAYS);
    let (relays, more) = directory.draw(now, seed, usize::from(ask.skip), most);
    let mut until = grant_minting::end_of(epoch).min(word.expires);
    let listed = relays.into_iter().filter_map(|relay| {
        let minted = if relay.epoch == epoch.number {
            grant_minting::mint(word, &relay.row, epoch, relay.epoch_key())
        } else if relay.epoch == last.number && epoch.last_until > unix {
            // It hears of the new epoch with its next heartbeat.
            until = until.min(grant_minting::end_of(&last));
            grant_minting::mint(word, &relay.row, &last, &relay.row.range_key.epoch_key(last.number))
        } else {
            None
        };
        let seen = relay.seen.map_or(0, |seen| now.since(seen).as_secs());
        Some(Listed {
            relay: relay.row.relay,
            operator: relay.row.operator.clone(),
            region: relay.row.region.clone(),
            seen: u16::try_from(seen).unwrap_or(u16::MAX),
            load: relay.load,
            tcp: relay.row.tcp,
            word: minted?,
        })
    });
    let relays = listed.collect();
    RelayList { made: unix, until, more, relays }
}
