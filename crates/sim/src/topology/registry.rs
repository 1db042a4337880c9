//! Networks by name, so that a plan can say `topology = "harp-t1"`.

use super::dumbbell::{BundlePath, bundle, dumbbell};
use super::error::TopologyError;
use super::graph::Graph;
use super::parameters::{Parameter, Parameters, Values, line, millis, parameter};
use super::{bmc, harp, hir, internet, mpath, wang};
use crate::pipe::PipeConfig;

/// A network that the registry knows.
#[derive(Clone, Copy, Debug)]
pub struct NamedTopology {
    /// The name of the network.
    pub name: &'static str,
    /// The network in one line.
    pub about: &'static str,
    /// The parameters that the network takes.
    pub parameters: &'static [Parameter],
    make: fn(&Values) -> Result<Graph, TopologyError>,
}

const DUMBBELL_PARAMETERS: &[Parameter] = &[
    parameter("left", 2.0, [1.0, 10_000.0], "number of hosts on the left"),
    parameter("right", 2.0, [1.0, 10_000.0], "number of hosts on the right"),
    parameter("access_mbit", 1_000.0, [0.001, 1e6], "Mbit/s of each host's line"),
    parameter("access_ms", 1.0, [0.0, 1e4], "one-way delay of each host's line, ms"),
    parameter("mbit", 10.0, [0.001, 1e6], "Mbit/s of the bottleneck"),
    parameter("ms", 8.0, [0.0, 1e4], "one-way delay of the bottleneck, ms"),
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait before the bottleneck"),
];

const BUNDLE_PARAMETERS: &[Parameter] = &[
    parameter("relays", 3.0, [0.0, 10_000.0], "number of relays"),
    parameter("direct", 1.0, [0.0, 1.0], "number of direct paths: 1 or 0"),
    parameter("hosts", 1.0, [1.0, 10_000.0], "number of senders, and of receivers"),
    parameter("mbit", 10.0, [0.001, 1e6], "Mbit/s of each path, behind its relay"),
    parameter("ms", 10.0, [0.0, 1e4], "one-way delay of the direct path and of the first relay's, ms"),
    parameter("step_ms", 2.0, [0.0, 1e4], "by how much the path of each further relay is longer, ms"),
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait before each bottleneck"),
    parameter("access_mbit", 1_000.0, [0.001, 1e6], "Mbit/s of hosts and to relays"),
    parameter("access_ms", 0.0, [0.0, 1e4], "one-way delay of each host's line, ms"),
];

/// A [`bundle`] of paths with the same rate and increasing delays.
fn even_bundle(values: &Values) -> Result<Graph, TopologyError> {
    let access = PipeConfig::new(values.mbit("access_mbit"), values.ms("access_ms"));
    let slow = |ms: f64| PipeConfig::new(values.mbit("mbit"), millis(ms)).queue(values.count("queue"));
    let relayed = (0..values.count("relays")).map(|number| {
        let half = (values.get("ms") + values.get("step_ms") * number as f64) / 2.0;
        BundlePath { first: line(values.get("access_mbit"), half), second: slow(half) }
    });
    let direct = slow(values.get("ms"));
    let direct = (values.count("direct") > 0).then_some(&direct);
    bundle(values.count("hosts"), &access, direct, &relayed.collect::<Vec<_>>())
}

/// Every network that [`named`] knows.
pub const KNOWN_TOPOLOGIES: &[NamedTopology] = &[
    NamedTopology {
        name: "dumbbell",
        about: "hosts on two sides of one bottleneck; the defaults have a base RTT of 20 ms",
        parameters: DUMBBELL_PARAMETERS,
        make: |values| {
            let access = PipeConfig::new(values.mbit("access_mbit"), values.ms("access_ms"));
            let bottleneck =
                PipeConfig::new(values.mbit("mbit"), values.ms("ms")).queue(values.count("queue"));
            dumbbell(values.count("left"), values.count("right"), &access, &bottleneck)
        },
    },
    NamedTopology {
        name: "bundle",
        about: "paths side by side, a direct one and one per relay",
        parameters: BUNDLE_PARAMETERS,
        make: even_bundle,
    },
    NamedTopology {
        name: "harp-t1",
        about: "Harp, Topology1: two paths, web hosts on both",
        parameters: harp::T1_PARAMETERS,
        make: harp::t1,
    },
    NamedTopology {
        name: "harp-t2",
        about: "Harp, Topology2: four paths, one of them shared",
        parameters: harp::T2_PARAMETERS,
        make: harp::t2,
    },
    NamedTopology {
        name: "harp-t3",
        about: "Harp, Topology3: 100 random routers (Waxman), 20 gateways and relays",
        parameters: harp::T3_PARAMETERS,
        make: harp::t3,
    },
    NamedTopology {
        name: "harp-t3-stubs",
        about: "Harp, Topology3 over a transit-stub graph",
        parameters: harp::T3_STUBS_PARAMETERS,
        make: harp::t3_stubs,
    },
    NamedTopology {
        name: "harp-t4",
        about: "Harp's report, Topology4: a direct path, and three that share a bottleneck",
        parameters: harp::T4_PARAMETERS,
        make: harp::t4,
    },
    NamedTopology {
        name: "harp-fig3",
        about: "Harp, figure 3: two links, one of them shared",
        parameters: harp::FIG3_PARAMETERS,
        make: harp::fig3,
    },
    NamedTopology {
        name: "hir",
        about: "HIR, figures 5, 7 and 9: relays between two gateways, foreground at the relays",
        parameters: hir::HIR_PARAMETERS,
        make: hir::hir,
    },
    NamedTopology {
        name: "wang",
        about: "Wang et al., simulation: 100 sources with k of 100 relays each, one receiver",
        parameters: wang::OVERLAY_PARAMETERS,
        make: wang::overlay_of,
    },
    NamedTopology {
        name: "wang-testbed",
        about: "Wang et al., testbed: two sources, three relays",
        parameters: wang::TESTBED_PARAMETERS,
        make: wang::testbed,
    },
    NamedTopology {
        name: "mpath-fig7",
        about: "mPath, figure 7: a core bottleneck, three proxies",
        parameters: mpath::FIG7_PARAMETERS,
        make: mpath::fig7,
    },
    NamedTopology {
        name: "mpath-fig10",
        about: "mPath, figure 10: the access link is the bottleneck",
        parameters: mpath::FIG10_PARAMETERS,
        make: mpath::fig10,
    },
    NamedTopology {
        name: "mpath-fig13",
        about: "mPath, figure 13: figure 7 and cross traffic on the path of proxy 2",
        parameters: mpath::FIG13_PARAMETERS,
        make: mpath::fig13,
    },
    NamedTopology {
        name: "bmc-dumbbell",
        about: "BMC, section 4: WAIMD and TCP flows at one RED bottleneck",
        parameters: bmc::DUMBBELL_PARAMETERS,
        make: bmc::dumbbell,
    },
    NamedTopology {
        name: "bmc-fig2",
        about: "BMC, figure 2: two bottlenecks, one sender on both",
        parameters: bmc::FIG2_PARAMETERS,
        make: bmc::fig2,
    },
    NamedTopology {
        name: "internet",
        about: "a synthetic Internet of some thousand routers, with relays and hosts",
        parameters: internet::INTERNET_PARAMETERS,
        make: internet::internet_of,
    },
];

/// Makes the network with this name and these parameters.
///
/// # Errors
/// [`TopologyError::UnknownTopology`], [`TopologyError::UnknownParameter`],
/// [`TopologyError::BadParameter`]: each says what would do.
pub fn named(name: &str, parameters: &Parameters) -> Result<Graph, TopologyError> {
    let Some(known) = KNOWN_TOPOLOGIES.iter().find(|known| known.name == name) else {
        let known: Vec<_> = KNOWN_TOPOLOGIES.iter().map(|known| known.name).collect();
        return Err(TopologyError::UnknownTopology { name: name.to_owned(), known: known.join(", ") });
    };
    (known.make)(&Values::new(name, known.parameters, parameters)?)
}
