//! TCP connections that a source keeps: to the sink and to its relays.

use byway_net::{Carrier, Dialing, Ready, TcpCarrier, Token, Watch};
use byway_wire::{Duration, Instant};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;

/// How long a SYN may remain unanswered before the attempt ends.
const ANSWER: Duration = Duration::from_secs(5);
/// The wait before the second attempt. It doubles with each failure, up to `AGAIN_AT_MOST`.
const AGAIN: Duration = Duration::from_millis(500);
const AGAIN_AT_MOST: Duration = Duration::from_secs(5);
/// The interval between two checks of which connections are open.
const LOOK: Duration = Duration::from_millis(50);

/// Keeps one TCP connection open from each local address to each remote address.
pub struct TcpDialer {
    watch: Watch,
    all: Vec<KeptConnection>,
    look_at: Instant,
    opened: Vec<TcpCarrier>,
    /// Local addresses of which a warning was given: one each.
    warned: BTreeSet<IpAddr>,
    warnings: Vec<String>,
}

struct KeptConnection {
    /// The local address; `None`: the system's choice.
    from: Option<IpAddr>,
    to: SocketAddr,
    under_way: Option<(Dialing, Instant)>,
    /// Lives while the connection is open.
    open: Weak<()>,
    next_at: Instant,
    failures: u32,
}

impl TcpDialer {
    /// For connections to these addresses from each of the addresses `from`. Without any of those
    /// the system chooses.
    pub fn new(watch: &Watch, addresses: impl Iterator<Item = SocketAddr>, from: &[IpAddr]) -> Self {
        let kept = |from, to| KeptConnection {
            from,
            to,
            under_way: None,
            open: Weak::new(),
            next_at: Instant::ZERO,
            failures: 0,
        };
        let mut all = Vec::new();
        for to in addresses {
            let fit = from.iter().filter(|from| from.is_ipv4() == to.is_ipv4());
            all.extend(fit.map(|from| kept(Some(*from), to)));
            if from.is_empty() {
                all.push(kept(None, to));
            }
        }
        let mut dialer = Self {
            watch: watch.clone(),
            all,
            look_at: Instant::ZERO,
            opened: Vec::new(),
            warned: BTreeSet::new(),
            warnings: Vec::new(),
        };
        for unused in from.iter().filter(|from| dialer.all.iter().all(|kept| kept.from != Some(**from))) {
            let family = if unused.is_ipv4() { "IPv4" } else { "IPv6" };
            dialer
                .warnings
                .push(format!("no path from {unused}: neither sink nor relays have an {family} address"));
        }
        dialer
    }

    /// Dials what is not connected.
    pub fn look(&mut self, now: Instant) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        for (kept, number) in self.all.iter_mut().zip(0..) {
            if kept.open.strong_count() > 0 {
                continue;
            }
            // Closed, it is watched no more.
            kept.under_way.take_if(|(_, until)| *until <= now);
            if kept.under_way.is_some() || now < kept.next_at {
                continue;
            }
            kept.next_at = now + (AGAIN * (1 << kept.failures.min(5))).min(AGAIN_AT_MOST);
            kept.failures += 1;
            let dialing = match Dialing::begin(kept.to, kept.from) {
                Ok(dialing) => dialing,
                Err(error) => {
                    if let Some(from) = kept.from.filter(|from| self.warned.insert(*from)) {
                        let to = kept.to;
                        self.warnings
                            .push(format!("cannot connect from {from} to {to}, will try again: {error}"));
                    }
                    continue;
                }
            };
            if self.watch.add(&dialing, Token(number)).is_ok() {
                kept.under_way = Some((dialing, now + ANSWER));
            }
        }
    }

    /// Takes in that a descriptor is ready.
    pub fn ready(&mut self, ready: Ready) {
        let at = usize::try_from(ready.token.0).ok();
        let Some(kept) = at.and_then(|at| self.all.get_mut(at)) else { return };
        if let Some((dialing, _)) = kept.under_way.take_if(|_| ready.writable) {
            let _ = self.watch.remove(&dialing);
            if let Ok(connection) = dialing.finish() {
                (kept.open, kept.failures) = (connection.lifetime(), 0);
                self.opened.push(connection);
            }
        }
    }

    /// The next sentence that a person should read.
    pub fn next_warning(&mut self) -> Option<String> {
        self.warnings.pop()
    }

    /// Connections for the driver.
    pub fn opened(&mut self) -> Vec<Carrier> {
        self.opened.drain(..).map(Carrier::from).collect()
    }
}
