//! Networks by name, so that a plan can say `topology = "harp-t1"`.

use super::dumbbell::dumbbell;
use super::error::Error;
use super::graph::Graph;
use super::harp;
use super::parameters::{Parameter, Parameters, Values, parameter};
use crate::pipe::PipeConfig;

/// A network that the registry knows.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// What it can be told.
    pub parameters: &'static [Parameter],
    make: fn(&Values) -> Result<Graph, Error>,
}

const DUMBBELL: &[Parameter] = &[
    parameter("left", 2.0, [1.0, 10_000.0], "number of hosts on the left"),
    parameter("right", 2.0, [1.0, 10_000.0], "number of hosts on the right"),
    parameter("access_mbit", 1_000.0, [0.001, 1e6], "Mbit/s of each host's line"),
    parameter("access_ms", 1.0, [0.0, 1e4], "one-way delay of each host's line, ms"),
    parameter("mbit", 10.0, [0.001, 1e6], "Mbit/s of the bottleneck"),
    parameter("ms", 8.0, [0.0, 1e4], "one-way delay of the bottleneck, ms"),
    parameter("queue", 50.0, [0.0, 1e6], "packets that wait before the bottleneck"),
];

/// Every network that [`named`] knows.
pub const KNOWN: &[Known] = &[
    Known {
        name: "dumbbell",
        about: "hosts on two sides of one bottleneck; the defaults have a base RTT of 20 ms",
        parameters: DUMBBELL,
        make: |values| {
            let access = PipeConfig::new(values.mbit("access_mbit"), values.ms("access_ms"));
            let bottleneck =
                PipeConfig::new(values.mbit("mbit"), values.ms("ms")).queue(values.count("queue"));
            dumbbell(values.count("left"), values.count("right"), &access, &bottleneck)
        },
    },
    Known {
        name: "harp-t1",
        about: "Harp, Topology1: two paths, web hosts on both",
        parameters: harp::T1,
        make: harp::t1,
    },
    Known {
        name: "harp-t2",
        about: "Harp, Topology2: four paths, one of them shared",
        parameters: harp::T2,
        make: harp::t2,
    },
    Known {
        name: "harp-t4",
        about: "Harp's report, Topology4: a direct path, and three that share one bottleneck",
        parameters: harp::T4,
        make: harp::t4,
    },
    Known {
        name: "harp-fig3",
        about: "Harp, figure 3: two links, one of them shared",
        parameters: harp::FIG3,
        make: harp::fig3,
    },
];

/// The network of this name, with these parameters.
///
/// # Errors
/// [`Error::UnknownTopology`], [`Error::UnknownParameter`], [`Error::BadParameter`]: each says what would do.
pub fn named(name: &str, parameters: &Parameters) -> Result<Graph, Error> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let known: Vec<_> = KNOWN.iter().map(|known| known.name).collect();
        return Err(Error::UnknownTopology { name: name.to_owned(), known: known.join(", ") });
    };
    (known.make)(&Values::new(name, known.parameters, parameters)?)
}
