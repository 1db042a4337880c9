//! The operator's settings of a relay.

use crate::destination_policy::Policy;
use crate::lending_control::LendingConfig;
use crate::quota_usage::Used;
use core::fmt;

/// The configuration of a relay. [`Config::new`] sets sound values for all but the key and the
/// clock.
#[derive(Clone)]
pub struct Config {
    /// 32 bytes of entropy from which all secrets are derived. A restarted relay with this key
    /// accepts its relay words again.
    pub key: [u8; 32],
    /// The previous key: relay words, consents and tags made under it are still valid. `None` makes
    /// them invalid, which revokes the words.
    pub previous_key: Option<[u8; 32]>,
    /// Unix time in ms when the relay is made. From then on the machine's own clock advances it.
    pub unix_millis: u64,
    /// The destinations that the relay sends to.
    pub policy: Policy,
    /// The most bytes per second of one grant, even if its relay word allows more. `None`: only the
    /// word limits.
    pub rate_cap: Option<u64>,
    /// The most bytes per UTC day of one grant, even if its relay word allows more. `None`: only
    /// the word limits.
    pub quota_cap: Option<u64>,
    /// The most bytes per UTC day, over all grants.
    pub per_day: Option<u64>,
    /// The most bytes per month (UTC), over all grants.
    pub per_month: Option<u64>,
    /// Bytes forwarded on this day and in this month before this start, from
    /// [`Relay::used`](crate::Relay::used). They count toward `per_day` and `per_month`.
    pub used: Used,
    /// Heartbeats count on from here. It has to be above that of every beat before, or registries
    /// take none.
    pub beat_counter: u64,
    /// The number of accounts, rounded up to a power of two of at least 8. An account counts one
    /// grant's use, in less than 300 bytes. Have twice as many accounts as grants a day, because
    /// the table fills unevenly.
    pub accounts: usize,
    /// The most receivers whose addresses are remembered, in less than 150 bytes each. One grant
    /// has at most 64 of them.
    pub receivers: usize,
    /// Bytes that may wait to be sent between two rounds of the driver. A datagram that does not
    /// fit is dropped.
    pub queue_bytes: usize,
    /// Datagrams that may wait to be sent between two rounds of the driver. More are dropped.
    pub queue_datagrams: usize,
    /// The lending of an end host's line, behind its own traffic. `None`: the relay forwards all
    /// that it receives.
    pub lend: Option<LendingConfig>,
    /// Greetings answered per second.
    pub greetings_per_second: u64,
    /// Proven notices per second, over all grants; one grant gets at most one a second about its
    /// limits.
    pub notices_per_second: u64,
    /// Notices per second to senders with unknown relay words, whose addresses may be forged.
    pub hints_per_second: u64,
}

impl Config {
    /// Sound values: public destinations only, 16,384 accounts and 4 MiB of queue. There is no
    /// limit of rate or quota.
    #[must_use]
    pub const fn new(key: [u8; 32], unix_millis: u64) -> Self {
        Self {
            key,
            previous_key: None,
            unix_millis,
            policy: Policy::public(),
            rate_cap: None,
            quota_cap: None,
            per_day: None,
            per_month: None,
            used: Used::NOTHING,
            beat_counter: unix_millis,
            accounts: 16_384,
            receivers: 65_536,
            queue_bytes: 4 << 20,
            queue_datagrams: 4_096,
            lend: None,
            greetings_per_second: 5_000,
            notices_per_second: 500,
            hints_per_second: 20,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("policy", &self.policy)
            .field("accounts", &self.accounts)
            .finish_non_exhaustive()
    }
}
