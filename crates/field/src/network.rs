//! The network that `byway lab up` builds: that of a plan, an experiment or a topology.

use crate::directories::Directories;
use crate::error::{About as _, Error, Result};
use byway_emulate::{Blueprint, Lab};
use byway_lab::plan::{Overrides, Plan};
use byway_lab::world;
use byway_sim::topology::{Graph, KNOWN_TOPOLOGIES, Parameters, named};
use std::fs;
use std::path::{Path, PathBuf};

/// A network to build, as the command line describes it.
#[derive(Clone, Debug, Default)]
pub struct NetworkRequest {
    /// A plan (a file that ends in .toml), an experiment or a topology by name.
    pub what: String,
    /// The name of the lab. `None`: that of the plan.
    pub name: Option<String>,
    /// The seed of all that is random about the links.
    pub seed: u64,
    /// The variant of a plan with a sweep.
    pub sweep: Vec<(String, Vec<String>)>,
    /// The parameters of a named topology.
    pub set: Vec<(String, f64)>,
    /// The directory of experiments. `None`: those in the program.
    pub experiments: Option<PathBuf>,
}

/// A network to build, and the name of its lab.
#[derive(Clone, Debug)]
pub struct Network {
    /// The lab's name.
    pub name: String,
    /// The hosts, wires and routes to build.
    pub blueprint: Blueprint,
}

impl Network {
    /// The network that is asked for.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be built.
    pub fn read(wanted: &NetworkRequest) -> Result<Self> {
        let (usual, graph) = graph(wanted)?;
        let name = wanted.name.clone().unwrap_or(usual);
        if !Lab::may_be_called(&name) {
            let what = format!(
                "{name:?} cannot be a lab's name: give --name with up to 40 letters, digits, -, _ and ."
            );
            return Err(Error::Usage(what));
        }
        let blueprint =
            Blueprint::new(&graph).map_err(|error| Error::Usage(format!("{}: {error}", wanted.what)))?;
        Ok(Self { name, blueprint })
    }
}

/// Returns the graph of the network, and the default name of its lab.
fn graph(wanted: &NetworkRequest) -> Result<(String, Graph)> {
    let what = wanted.what.as_str();
    let path = Path::new(what);
    if path.extension().is_some_and(|extension| extension == "toml") {
        let source = fs::read_to_string(path).about(|| what)?;
        return Ok((called_after(path), of_plan(wanted, what, &source)?));
    }
    let directories = Directories { experiments: wanted.experiments.clone(), ..Directories::default() };
    let experiment = directories.experiments()?.into_iter().find(|experiment| experiment.id == what);
    if let Some(plan) = experiment.and_then(|experiment| experiment.plan) {
        return Ok((what.to_owned(), of_plan(wanted, &format!("{what}/plan.toml"), &plan)?));
    }
    if KNOWN_TOPOLOGIES.iter().any(|known| known.name == what) {
        let mut parameters = Parameters::new(wanted.seed);
        for (name, value) in &wanted.set {
            parameters.set(name, *value);
        }
        let graph = named(what, &parameters).map_err(|error| Error::Usage(error.to_string()))?;
        return Ok((what.to_owned(), graph));
    }
    let sentence = format!(
        "{what} is no experiment with a plan (`byway lab list`) and no topology (`byway lab topologies`); a plan's file ends in .toml"
    );
    Err(Error::NotFound(sentence))
}

/// The network of the variant that was asked for.
fn of_plan(wanted: &NetworkRequest, file: &str, source: &str) -> Result<Graph> {
    if let Some((name, _)) = wanted.set.first() {
        return Err(Error::Usage(format!(
            "--set {name}: a plan has its own parameters; --set is for topologies"
        )));
    }
    let overrides = Overrides { seeds: None, sweep: wanted.sweep.clone() };
    let plan =
        Plan::read_network(file, source, &overrides).map_err(|error| Error::Usage(error.to_string()))?;
    let [setup] = plan.variants.as_slice() else {
        let wide = plan.axes.iter().filter(|axis| axis.labels.len() > 1);
        let choices: Vec<_> =
            wide.map(|axis| format!("--sweep {}={}", axis.name, axis.labels.join("|"))).collect();
        let sentence = format!(
            "{file} has {} variants and a lab is one: choose by {}",
            plan.variants.len(),
            choices.join(" ")
        );
        return Err(Error::Usage(sentence));
    };
    world::graph(setup, wanted.seed).map_err(|error| Error::Usage(format!("{file}: {error}")))
}

/// The file's name without extension. A plan.toml is named after its folder.
fn called_after(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = || path.canonicalize().ok()?.parent()?.file_name()?.to_str().map(str::to_owned);
    if stem == "plan" { folder().unwrap_or_else(|| stem.to_owned()) } else { stem.to_owned() }
}
