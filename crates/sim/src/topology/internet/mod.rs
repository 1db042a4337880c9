//! A synthetic Internet, made by plausible rules, not from measurements. So results on it are only
//! qualitative. "Pairs" are pairs of hosts. A "detour" is a route through one relay.
//! `tests/it/topology_random.rs` checks most values.
//!
//! | Statistic | Seeds 1 to 3 | Published |
//! |---|---|---|
//! | Neighbours of a router: median, largest | 2, 95 to 166 | |
//! | Exponent a: share of routers with at least d neighbours is ~ d^a | -1.6 | |
//! | Share of all link ends at the 1 % of routers with most neighbours | 13 to 15 % | |
//! | RTT that 5 %, 50 %, 95 % of pairs stay below (ms) | 47 to 54, 164 to 176, 336 to 366 | |
//! | RTT over that of a straight fibre | 2.1 | 2.1 (Bozkurt) |
//! | Pairs with a detour faster than the default route | 55 to 60 % | 68 to 85 % (Ledlie) |
//! | Pairs with a detour faster by a fifth of the RTT | 18 to 26 % | 22 to 37 % (Ledlie) |
//! | Pairs whose core is slower than both access lines | 81 to 88 % | |
//! | Pairs with a detour of 1.2 times the rate | 66 to 70 % | 40 % (mPath: a transfer's gain) |
//! | Pairs with a detour of twice the rate | 48 to 56 % | 20 % (mPath: the same) |
//!
//! Of seeds 1 to 5 together, by the rate of the widest detour over that of the direct route:
//!
//! | Ends | Relays | At least 1.01, 1.2, 2 times | Median, mean | Published |
//! |---|---|---|---|---|
//! | 152 relays | the same 152 | 81, 75, 58 % | 2.45, 3.67 | 74.8 % have 1.2 times and 1 Mbit/s more (Haddow); calibrated on it |
//! | relays | 5 of them | 50, 40, 18 % | 1.00, 1.57 | 78 % gain; 1.67, 3.27 (CRONets: nodes in clouds, a TCP for each leg) |
//! | routers of backbones | all of them | 90, 86, 69 % | 3.14, 4.40 | little scope (Lai: nodes in clouds, which own their backbones) |
//!
//! | source | title |
//! |---|---|
//! | Bozkurt | "Dissecting latency in the Internet's fiber infrastructure" (2018) |
//! | CRONets | Cai et al., "CRONets: cloud-routed overlay networks" (ICDCS 2016) |
//! | Haddow | Haddow et al., "On the feasibility of bandwidth detouring" (PAM 2011) |
//! | Lai | Lai et al. (HotCloud 2018) |
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
//! | Hosts `h1, ...` | are in any edge network; `campus` of them on such lines, others on [`presets`](crate::presets) |
//! | Common lines `c1.tokyo, ...` | a share `common` of the edge networks, up to 20 of a city, share one line |
//! | Routes | cross the fewest networks; among those, the delay inside networks decides |
//! | Transit | a network carries no traffic between two of its providers or peers |
//! | Core lines | have the rate that cross traffic leaves in that direction and hour: log-uniform, 5 to 500 Mbit/s |
//! | Lines of edge networks | are such core lines, but for 2 in 5, which have 1 Gbit/s |

mod cross_traffic;
mod geography;

use super::error::TopologyError;
use super::graph::Graph;
use super::measure::bdp_packets;
use super::parameters::{Parameter, Values, bits, dice, millis, parameter};
use super::random_graph::DisjointSets;
use crate::pipe::PipeConfig;
use crate::presets;
use cross_traffic::{CoreLine, available_mbit};
use geography::{City, EXCHANGE_CITIES, Location, settle};
use std::collections::BTreeMap;

/// The size of a synthetic Internet, and the hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Internet {
    /// Routers in all, without relays and hosts.
    pub routers: usize,
    /// The number of routers that are regional networks.
    pub regional: usize,
    /// The number of relays, named p1, p2, and so on.
    pub relays: usize,
    /// The number of hosts, named h1, h2, and so on.
    pub hosts: usize,
    /// The share of hosts with campus lines, as relays have. The others have home lines.
    pub campus: f64,
    /// The share of edge networks that share one line to the rest of the Internet with others.
    pub common: f64,
    /// The hour of the day in UTC, from 0 to 23, which decides the cross traffic.
    pub hour: usize,
    /// The factor by which all rates and queues are multiplied. A slower network has fewer packets
    /// to simulate.
    pub scale: f64,
}

impl Default for Internet {
    fn default() -> Self {
        Self {
            routers: 3_000,
            regional: 280,
            relays: 450,
            hosts: 200,
            campus: 0.4,
            common: 0.1,
            hour: 12,
            scale: 1.0,
        }
    }
}

pub(super) const INTERNET_PARAMETERS: &[Parameter] = &[
    parameter("routers", 3_000.0, [500.0, 20_000.0], "number of routers, without relays and hosts"),
    parameter("regional", 280.0, [10.0, 1_000.0], "number of regional networks among them"),
    parameter("relays", 450.0, [0.0, 20_000.0], "number of relays (mPath, section 4.2: about 450)"),
    parameter("hosts", 200.0, [0.0, 20_000.0], "number of hosts"),
    parameter("campus", 0.4, [0.0, 1.0], "share of hosts on campus lines; others have lines of homes"),
    parameter("common", 0.1, [0.0, 1.0], "share of edge networks that share one line with others"),
    parameter("hour", 12.0, [0.0, 23.0], "number of the hour of the day in UTC; it decides cross traffic"),
    parameter("world", 0.0, [0.0, 1e6], "number of the network; 0: the seed of the run"),
    parameter("scale", 1.0, [0.001, 10.0], "factor on all rates, and on queues with them"),
];

pub(super) fn internet_of(values: &Values) -> Result<Graph, TopologyError> {
    let shape = Internet {
        routers: values.count("routers"),
        regional: values.count("regional"),
        relays: values.count("relays"),
        hosts: values.count("hosts"),
        campus: values.get("campus"),
        common: values.get("common"),
        hour: values.count("hour"),
        scale: values.get("scale"),
    };
    let seed = match values.count("world") {
        0 => values.seed,
        world => world as u64,
    };
    internet(seed, &shape)
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

/// The most edge networks behind one common line.
const COMMON_LINE_EDGES: usize = 20;
/// The rate in Mbit/s of a line from an edge network to the common network of its city. It exceeds
/// any common line.
const METRO_MBIT: f64 = 1_000.0;

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
    let mut net =
        InternetBuilder { graph: Graph::new(), seed, shape, sellers: Vec::new(), commons: BTreeMap::new() };
    net.backbones()?;
    net.regional()?;
    let edges = shape.routers.saturating_sub(net.sellers.len());
    net.edges(edges)?;
    net.leaves(edges.max(1))?;
    Ok(net.graph)
}

/// A network that sells transit to other networks.
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
    /// The number of edge networks behind common lines so far, for each city.
    commons: BTreeMap<&'static str, usize>,
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
        let (from, to, place, ms) = (a.name.clone(), b.name.clone(), a.place, a.place.ms(b.place));
        self.core(&from, &to, place, ms, CoreLine::Between)
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
            if dice(self.seed, &format!("common line of {name}")).chance(self.shape.common) {
                self.behind_common_line(&name, city, place)?;
                continue;
            }
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

    /// Joins an edge network to the common network of its city, whose one line to a regional
    /// network all its edge networks share.
    fn behind_common_line(&mut self, edge: &str, city: City, place: Location) -> Result<(), TopologyError> {
        let behind = self.commons.entry(city.name).or_default();
        let common = format!("c{}.{}", 1 + *behind / COMMON_LINE_EDGES, city.name);
        let is_new = behind.is_multiple_of(COMMON_LINE_EDGES);
        *behind += 1;
        if is_new {
            self.graph.add_node(&common)?;
            let draw = dice(self.seed, &format!("provider of {common}")).unit();
            let near = |seller: &TransitProvider| seller.regional && seller.continent == city.continent;
            let provider = self.choose(draw, city.place, near);
            if let Some(provider) = provider.or_else(|| self.choose(draw, city.place, |_| true)) {
                let ms = self.sellers[provider].place.ms(city.place);
                self.cross(provider, &common, ms, EDGE_COST)?;
            }
        }
        self.graph.join(&common, edge, &self.line(METRO_MBIT, place.ms(city.place)))
    }

    /// Draws a seller among those that `will_do` accepts. Many neighbours and a short distance make
    /// a seller likelier.
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

    /// A line between networks.
    fn cross(&mut self, seller: usize, name: &str, ms: f64, cost: u64) -> Result<(), TopologyError> {
        let from = &mut self.sellers[seller];
        from.neighbours += 1;
        let (from, place) = (from.name.clone(), from.place);
        let kind = if cost == EDGE_COST { CoreLine::Edge } else { CoreLine::Between };
        self.core(&from, name, place, ms, kind)?;
        self.graph.set_cost(&from, name, cost)
    }

    /// Adds a core line, with the rate that cross traffic leaves in each direction at this hour.
    fn core(
        &mut self,
        from: &str,
        to: &str,
        place: Location,
        ms: f64,
        kind: CoreLine,
    ) -> Result<(), TopologyError> {
        let local_hour = place.local_hour(self.shape.hour);
        let pipe = |from, to| {
            self.line(available_mbit(self.seed, [from, to], kind, self.shape.hour, local_hour), ms)
        };
        let (there, back) = (pipe(from, to), pipe(to, from));
        self.graph.add_edge(from, to, there, back)
    }

    /// Makes a core line. Its queue holds the packets of 50 ms.
    fn line(&self, mbit: f64, ms: f64) -> PipeConfig {
        let rate = bits(mbit * self.shape.scale);
        let queue = bdp_packets(rate, millis(50.0), PACKET_BYTES).max(MIN_QUEUE_PACKETS);
        PipeConfig::new(rate, millis(ms)).queue(queue)
    }

    /// Adds relays, each in an edge network of its own while there are enough, and hosts.
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
            let on_campus = random.chance(self.shape.campus);
            // Five of twelve home lines are fibre, four are cable, and three are DSL.
            let both = match random.below(12) {
                _ if on_campus => presets::Duplex { up: campus.clone(), down: campus.clone() },
                0..5 => presets::fibre(),
                5..9 => presets::cable(),
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
    fn edge_networks_behind_a_common_line_have_no_other() {
        let shape = Internet { routers: 1_500, regional: 50, relays: 0, hosts: 0, ..Internet::default() };
        let graph = internet(1, &shape).unwrap();
        let (mut behind, mut most) = (0, 0);
        for common in graph.nodes().filter(|name| name.starts_with('c')) {
            let (edges, providers): (Vec<&str>, Vec<&str>) =
                graph.neighbours(common).unwrap().partition(|name| name.starts_with('e'));
            assert_eq!(providers.len(), 1, "{common}: {providers:?}");
            for edge in &edges {
                assert_eq!(graph.neighbours(edge).unwrap().count(), 1, "{edge}");
            }
            behind += edges.len();
            most = most.max(edges.len());
        }
        // A tenth of some 1 300 edge networks, within three standard deviations.
        assert!((95..165).contains(&behind), "{behind}");
        assert!((5..=COMMON_LINE_EDGES).contains(&most), "{most}");
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
