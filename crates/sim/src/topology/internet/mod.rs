//! A synthetic Internet, made by plausible rules, not from measurements. So results on it are only
//! qualitative. "Pairs" are pairs of hosts. A "detour" is a route through one relay.
//! `tests/it/topology_random.rs` checks most values.
//!
//! | Statistic | Seeds 1 to 3 | Published |
//! |---|---|---|
//! | Neighbours of a router: median, largest | 2, 90 to 180 | |
//! | Exponent a: share of routers with at least d neighbours is ~ d^a | -1.4 to -1.5 | |
//! | Share of all link ends at the 1 % of routers with most neighbours | 14 to 16 % | |
//! | RTT that 5 %, 50 %, 95 % of pairs stay below (ms) | 45, 170 to 180, 330 to 350 | |
//! | RTT over that of a straight fibre | 2.1 | 2.1 (Bozkurt) |
//! | Pairs with a detour faster than the default route | 51 to 62 % | 68 to 85 % (Ledlie) |
//! | Pairs with a detour faster by a fifth of the RTT | 19 to 25 % | 22 to 37 % (Ledlie) |
//! | Pairs whose core is slower than both access lines | 35 to 49 % | |
//! | Pairs with a detour of a higher rate | 28 to 42 % | 40 % (mPath) |
//! | Pairs with a detour of more than twice the rate | 21 to 34 % | 20 % (mPath) |
//!
//! | source | title |
//! |---|---|
//! | Bozkurt | "Dissecting latency in the Internet's fiber infrastructure" (2018) |
//! | Ledlie | Ledlie, Gardner and Seltzer, "Network coordinates in the wild" (2007, figure 3) |
//! | mPath | the paper on mPath (section 4.3: pairs whose throughput rose) |
//! | Tang, Crovella | (not in the table) only 10 % of pairs with a detour faster by a fifth |
//!
//! | what | rule |
//! |---|---|
//! | Backbones a1 to a12 | have routers in cities, such as "a3.tokyo"; two meet in up to 3 cities |
//! | Regional networks b1, ... | buy from 2 backbones of their continent, have up to 3 peers |
//! | Edge networks `e1, ...` | buy transit from 1 to 3 providers, 1 in 20 on another continent |
//! | Providers | are preferred if near, or with many customers (preferential attachment) |
//! | Relays `p1, ...` | are in edge networks of their own, on lines of 100 Mbit/s |
//! | Hosts `h1, ...` | are in any edge network, on such lines or on [`presets`](crate::presets) |
//! | Routes | cross the fewest networks; among those, the delay inside networks decides |
//! | Transit | a network carries no traffic between two of its providers or peers |
//! | Lines between networks | have 1 Gbit/s; *tight* ones have only 2 to 20 Mbit/s left |
//! | Lines within backbones | have 10 Gbit/s |

mod geography;

use super::error::TopologyError;
use super::graph::Graph;
use super::measure::bdp_packets;
use super::parameters::{Parameter, Values, between, bits, dice, millis, parameter};
use super::random_graph::DisjointSets;
use crate::pipe::PipeConfig;
use crate::presets;
use geography::{EXCHANGE_CITIES, Location, settle};

/// How large a synthetic Internet is, and how congested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Internet {
    /// Routers in all, without relays and hosts.
    pub routers: usize,
    /// The number of regional networks among them.
    pub regional: usize,
    /// The number of relays, named p1, p2, and so on.
    pub relays: usize,
    /// The number of hosts, named h1, h2, and so on.
    pub hosts: usize,
    /// The share of lines between networks that are tight.
    pub tight: f64,
    /// The factor by which all rates and queues are multiplied. A slower network has fewer packets
    /// to simulate.
    pub scale: f64,
}

impl Default for Internet {
    fn default() -> Self {
        Self { routers: 3_000, regional: 280, relays: 450, hosts: 200, tight: 0.12, scale: 1.0 }
    }
}

pub(super) const INTERNET_PARAMETERS: &[Parameter] = &[
    parameter("routers", 3_000.0, [500.0, 20_000.0], "number of routers, without relays and hosts"),
    parameter("regional", 280.0, [10.0, 1_000.0], "number of regional networks among them"),
    parameter("relays", 450.0, [0.0, 20_000.0], "number of relays (mPath, section 4.2: about 450)"),
    parameter("hosts", 200.0, [0.0, 20_000.0], "number of hosts"),
    parameter("tight", 0.12, [0.0, 1.0], "share of lines between networks that are congested"),
    parameter("scale", 1.0, [0.001, 10.0], "factor on all rates, and on queues with them"),
];

pub(super) fn internet_of(values: &Values) -> Result<Graph, TopologyError> {
    let shape = Internet {
        routers: values.count("routers"),
        regional: values.count("regional"),
        relays: values.count("relays"),
        hosts: values.count("hosts"),
        tight: values.get("tight"),
        scale: values.get("scale"),
    };
    internet(values.seed, &shape)
}

const BACKBONE_COUNT: usize = 12;

/// The routing cost of crossing into another network, in nanoseconds. It exceeds any delay inside
/// networks.
const NETWORK_COST: u64 = 1_000_000_000_000;
/// The routing cost of a line between peers: 1.6 × `NETWORK_COST`. One such line costs less than
/// two lines through a common provider (2.0). Two such lines cost more (3.2) than three lines
/// through two providers (3.0).
const PEER_COST: u64 = NETWORK_COST * 8 / 5;
/// The routing cost of a line between an edge network and its provider. A route between two edge
/// networks has two such lines. A detour through a third edge network would have four, so routes
/// avoid it.
const EDGE_COST: u64 = NETWORK_COST * 1_000;

/// The smallest queue limit in packets, even for slow lines.
const MIN_QUEUE_PACKETS: usize = 20;
/// The size of these packets in bytes.
const PACKET_BYTES: u32 = 1_500;

/// Makes a synthetic Internet: backbones, regional networks and edge networks on a globe, with
/// relays `p1, p2, ...` and hosts `h1, h2, ...`
///
/// # Errors
/// [`TopologyError::ZeroRate`], if `shape.scale` makes a line slower than one bit per second.
pub fn internet(seed: u64, shape: &Internet) -> Result<Graph, TopologyError> {
    let mut net = InternetBuilder { graph: Graph::new(), seed, shape, sellers: Vec::new() };
    net.backbones()?;
    net.regional()?;
    let edges = shape.routers.saturating_sub(net.sellers.len());
    net.edges(edges)?;
    net.leaves(edges.max(1))?;
    Ok(net.graph)
}

/// A network that sells transit to others.
struct TransitProvider {
    name: String,
    /// The number of the network. All its routers have the same.
    network: usize,
    continent: u8,
    place: Location,
    regional: bool,
    neighbours: usize,
}

struct InternetBuilder<'a> {
    graph: Graph,
    seed: u64,
    shape: &'a Internet,
    sellers: Vec<TransitProvider>,
}

impl InternetBuilder<'_> {
    fn backbones(&mut self) -> Result<(), TopologyError> {
        for network in 1..=BACKBONE_COUNT {
            let first = self.sellers.len();
            let mut random = dice(self.seed, &format!("cities of a{network}"));
            for city in EXCHANGE_CITIES {
                // In large cities almost always, in small ones now and then.
                if random.chance(0.25 + city.weight * 0.12) {
                    let name = format!("a{network}.{}", city.name);
                    self.graph.add_node(&name)?;
                    self.sellers.push(TransitProvider {
                        name,
                        network,
                        continent: city.continent,
                        place: city.place,
                        regional: false,
                        neighbours: 0,
                    });
                }
            }
            self.backbone(network, first)?;
        }
        for one in 1..=BACKBONE_COUNT {
            for other in one + 1..=BACKBONE_COUNT {
                self.meet(one, other)?;
            }
        }
        Ok(())
    }

    /// Joins the routers of a backbone, nearest pairs first, if no route joins them yet or each has
    /// fewer than two lines. Then adds up to three lines of more than 5 000 km, for several ways
    /// round the globe.
    fn backbone(&mut self, network: usize, first: usize) -> Result<(), TopologyError> {
        let members = first..self.sellers.len();
        let mut pairs = Vec::new();
        for one in members.clone() {
            for other in one + 1..self.sellers.len() {
                pairs.push((self.sellers[one].place.distance(self.sellers[other].place), one, other));
            }
        }
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut parts = DisjointSets::new(self.sellers.len());
        let mut near = vec![0; self.sellers.len()];
        for &(_, one, other) in &pairs {
            let apart = parts.unite(one, other);
            if apart || near[one] < 2 && near[other] < 2 {
                self.within(one, other)?;
                near[one] += 1;
                near[other] += 1;
            }
        }
        let mut random = dice(self.seed, &format!("long lines of a{network}"));
        let far: Vec<_> =
            pairs.iter().filter(|&&(km, one, other)| km > 5_000.0 && self.apart(one, other)).collect();
        for _ in 0..3 {
            if let Some(&&(_, one, other)) = far.get(random.below(far.len() as u64) as usize)
                && self.apart(one, other)
            {
                self.within(one, other)?;
            }
        }
        Ok(())
    }

    fn apart(&self, one: usize, other: usize) -> bool {
        self.graph.direction(&self.sellers[one].name, &self.sellers[other].name).is_err()
    }

    /// Adds a line within a backbone. Its routing cost is its delay.
    fn within(&mut self, one: usize, other: usize) -> Result<(), TopologyError> {
        let (a, b) = (&self.sellers[one], &self.sellers[other]);
        let pipe = self.line(10_000.0, a.place.ms(b.place));
        self.graph.join(&a.name, &b.name, &pipe)
    }

    /// Two backbones meet in up to three cities where both are.
    fn meet(&mut self, one: usize, other: usize) -> Result<(), TopologyError> {
        let mut cities = Vec::new();
        for (at, a) in self.sellers.iter().enumerate().filter(|(_, a)| a.network == one) {
            let here = |b: &TransitProvider| b.network == other && b.place == a.place;
            cities.extend(self.sellers.iter().position(here).map(|there| (at, there)));
        }
        let mut random = dice(self.seed, &format!("meetings of a{one} and a{other}"));
        for _ in 0..3.min(cities.len()) {
            let (one, other) = cities.swap_remove(random.below(cities.len() as u64) as usize);
            let name = self.sellers[other].name.clone();
            self.cross(one, &name, 0.2, NETWORK_COST)?;
        }
        Ok(())
    }

    fn regional(&mut self) -> Result<(), TopologyError> {
        let backbones = self.sellers.len();
        for number in 1..=self.shape.regional {
            let name = format!("b{number}");
            self.graph.add_node(&name)?;
            let (city, place) = settle(self.seed, &name);
            let mut random = dice(self.seed, &format!("providers of {name}"));
            let mut bought: Vec<usize> = Vec::new();
            for _ in 0..2 {
                let choice = self.choose(random.unit(), place, |seller| {
                    !seller.regional
                        && seller.continent == city.continent
                        && bought.iter().all(|&one| self.sellers[one].network != seller.network)
                });
                let Some(choice) = choice else { break };
                self.cross(choice, &name, self.sellers[choice].place.ms(place), NETWORK_COST)?;
                bought.push(choice);
            }
            if bought.is_empty() {
                // No backbone on its continent: the nearest one abroad.
                let far = |&one: &usize| self.sellers[one].place.distance(place);
                let nearest = (0..backbones).min_by(|one, other| far(one).total_cmp(&far(other)));
                if let Some(nearest) = nearest {
                    self.cross(nearest, &name, self.sellers[nearest].place.ms(place), NETWORK_COST)?;
                }
            }
            let mut peers: Vec<usize> = Vec::new();
            for _ in 0..random.below(4) {
                let choice = self.choose(random.unit(), place, |seller| seller.regional);
                let Some(choice) = choice.filter(|choice| !peers.contains(choice)) else { continue };
                self.cross(choice, &name, self.sellers[choice].place.ms(place), PEER_COST)?;
                peers.push(choice);
            }
            self.sellers.push(TransitProvider {
                network: BACKBONE_COUNT + number,
                continent: city.continent,
                place,
                regional: true,
                neighbours: bought.len() + peers.len(),
                name,
            });
        }
        Ok(())
    }

    fn edges(&mut self, edges: usize) -> Result<(), TopologyError> {
        for number in 1..=edges {
            let name = format!("e{number}");
            self.graph.add_node(&name)?;
            let (city, place) = settle(self.seed, &name);
            let mut random = dice(self.seed, &format!("providers of {name}"));
            let wanted = [1, 1, 2, 2, 3][random.below(5) as usize];
            let mut bought: Vec<usize> = Vec::new();
            for _ in 0..wanted {
                let (regional, abroad) = (random.chance(0.85), random.chance(0.05));
                let choice = self.choose(random.unit(), place, |seller| {
                    seller.regional == regional
                        && (seller.continent == city.continent) != abroad
                        && bought.iter().all(|&one| self.sellers[one].network != seller.network)
                });
                let choice = choice.or_else(|| {
                    // Nobody of that kind there: anybody, but somebody.
                    bought.is_empty().then(|| self.choose(random.unit(), place, |_| true)).flatten()
                });
                let Some(choice) = choice else { continue };
                self.cross(choice, &name, self.sellers[choice].place.ms(place), EDGE_COST)?;
                bought.push(choice);
            }
        }
        Ok(())
    }

    /// A seller among those that will do: the more neighbours it has and the nearer it is, the
    /// likelier.
    fn choose(
        &self,
        draw: f64,
        place: Location,
        will_do: impl Fn(&TransitProvider) -> bool,
    ) -> Option<usize> {
        /// Kilometres at which a seller is half as attractive.
        const HALF_APPEAL_KM: f64 = 2_000.0;
        /// The exponent of the sellers' degrees. It exceeds 1: the large grow faster than in
        /// proportion. So degrees have their heavy tail though there are only some hundred sellers.
        const DEGREE_EXPONENT: f64 = 1.3;
        let mut total = 0.0;
        let mut upto = Vec::new();
        for (at, seller) in self.sellers.iter().enumerate().filter(|(_, seller)| will_do(seller)) {
            let drawn = libm::pow((1 + seller.neighbours) as f64, DEGREE_EXPONENT);
            total += drawn / (1.0 + place.distance(seller.place) / HALF_APPEAL_KM);
            upto.push((total, at));
        }
        let point = upto.partition_point(|&(sum, _)| sum <= draw * total);
        upto.get(point).map(|&(_, at)| at)
    }

    /// A line between networks, which may be tight.
    fn cross(&mut self, seller: usize, name: &str, ms: f64, cost: u64) -> Result<(), TopologyError> {
        let from = &mut self.sellers[seller];
        from.neighbours += 1;
        let from = from.name.clone();
        let mut random = dice(self.seed, &format!("line {from} {name}"));
        let mbit = if random.chance(self.shape.tight) { between(&mut random, [2.0, 20.0]) } else { 1_000.0 };
        self.graph.join(&from, name, &self.line(mbit, ms))?;
        self.graph.set_cost(&from, name, cost)
    }

    /// A core line. Its queue holds what it sends in 50 ms.
    fn line(&self, mbit: f64, ms: f64) -> PipeConfig {
        let rate = bits(mbit * self.shape.scale);
        let queue = bdp_packets(rate, millis(50.0), PACKET_BYTES).max(MIN_QUEUE_PACKETS);
        PipeConfig::new(rate, millis(ms)).queue(queue)
    }

    /// Relays, each in an edge network of its own while there are such, and hosts.
    fn leaves(&mut self, edges: usize) -> Result<(), TopologyError> {
        let campus = PipeConfig::new(bits(100.0), millis(1.0)).queue(400).mtu(1_500);
        let mut free: Vec<usize> = (1..=edges).collect();
        for number in 1..=self.shape.relays {
            if free.is_empty() {
                free = (1..=edges).collect();
            }
            let name = format!("p{number}");
            let at = dice(self.seed, &format!("place {name}")).below(free.len() as u64) as usize;
            let edge = free.swap_remove(at);
            self.leaf(&name, edge, campus.clone(), campus.clone())?;
        }
        for number in 1..=self.shape.hosts {
            let name = format!("h{number}");
            let mut random = dice(self.seed, &format!("place {name}"));
            let edge = 1 + random.below(edges as u64) as usize;
            let both = match random.below(20) {
                0..8 => presets::Duplex { up: campus.clone(), down: campus.clone() },
                8..13 => presets::fibre(),
                13..17 => presets::cable(),
                _ => presets::dsl(),
            };
            self.leaf(&name, edge, both.up, both.down)?;
        }
        Ok(())
    }

    fn leaf(
        &mut self,
        name: &str,
        edge: usize,
        up: PipeConfig,
        down: PipeConfig,
    ) -> Result<(), TopologyError> {
        let edge = format!("e{edge}");
        self.graph.add_node(name)?;
        self.graph.set_region(name, settle(self.seed, &edge).0.continent)?;
        self.graph.add_edge(name, &edge, self.scaled(up), self.scaled(down))
    }

    /// The line of a relay or host, with its rate multiplied by `shape.scale`. The queue is
    /// multiplied, too, so a full queue takes the same time to drain. But the queue holds at least
    /// `MIN_QUEUE_PACKETS` packets.
    fn scaled(&self, mut pipe: PipeConfig) -> PipeConfig {
        let scaled = |value: u64| libm::round(value as f64 * self.shape.scale) as u64;
        pipe.rate = pipe.rate.map(scaled);
        let packets = usize::try_from(scaled(pipe.queue_packets as u64)).unwrap_or(usize::MAX);
        pipe.queue_packets = packets.max(MIN_QUEUE_PACKETS);
        pipe.queue_bytes = scaled(pipe.queue_bytes).max(MIN_QUEUE_PACKETS as u64 * u64::from(PACKET_BYTES));
        pipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_an_end_holds_as_much_time_at_a_tenth_of_the_rate() {
        let of = |scale| Internet {
            routers: 500,
            regional: 10,
            relays: 3,
            hosts: 30,
            scale,
            ..Internet::default()
        };
        let (whole, tenth) = (internet(1, &of(1.0)).unwrap(), internet(1, &of(0.1)).unwrap());
        // Seconds of the line that its queue holds, and packets.
        let queue = |pipe: &PipeConfig| {
            let packet = u64::from(PACKET_BYTES);
            let bytes = pipe.queue_bytes.min((pipe.queue_packets as u64).saturating_mul(packet));
            (bytes as f64 * 8.0 / pipe.rate.unwrap() as f64, bytes / packet)
        };
        let mut compared = 0;
        for direction in whole.directions() {
            let (from, to) = whole.ends(direction);
            if from.starts_with(['h', 'p']) || to.starts_with(['h', 'p']) {
                let (a, b) = (whole.config(direction), tenth.config(direction));
                let ((long, _), (short, packets)) = (queue(a), queue(b));
                assert_eq!(b.rate.unwrap() * 10, a.rate.unwrap());
                assert!(
                    packets >= MIN_QUEUE_PACKETS as u64 && (short / long - 1.0).abs() < 0.01,
                    "{long}, then {short}"
                );
                compared += 1;
            }
        }
        assert_eq!(compared, 66);
    }

    #[test]
    fn round_trips_take_about_twice_what_a_straight_fibre_would() {
        const LIGHT_IN_FIBRE: f64 = 204.0;
        let graph = internet(4, &Internet { relays: 0, hosts: 0, ..Internet::default() }).unwrap();
        let mut stretches = Vec::new();
        for pair in 1..400 {
            let ends = [format!("e{pair}"), format!("e{}", pair + 400)];
            let [a, b] = [&ends[0], &ends[1]].map(|name| settle(4, name).1);
            let km = a.distance(b);
            if km > 1_000.0 {
                let way = graph.way(&ends[0], &ends[1], &[]).unwrap();
                stretches.push(graph.propagation(&way).as_secs_f64() * 1e3 / (km / LIGHT_IN_FIBRE));
            }
        }
        stretches.sort_by(f64::total_cmp);
        let median = stretches[stretches.len() / 2];
        println!("median stretch {median:.2} of {} pairs", stretches.len());
        assert!((1.8..2.4).contains(&median), "{median}");
    }
}
