//! What `byway lab up` is to build: the network of a plan, an experiment or a topology.

use super::place;
use crate::args::lab::{LabUp, Where};
use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result};
use byway_emulate::{Blueprint, Lab};
use byway_lab::plan::{Overrides, Plan};
use byway_lab::world;
use byway_sim::topology::{Graph, KNOWN, Parameters, named};
use std::fs;
use std::path::Path;

/// A network and what to call it.
pub(super) struct Site {
    /// The lab's name.
    pub(super) name: String,
    /// What is to be built.
    pub(super) blueprint: Blueprint,
}

impl Site {
    /// What the command line asks for.
    pub(super) fn read(arguments: &LabUp) -> Result<Self> {
        let (usual, graph) = graph(arguments)?;
        let name = arguments.name.clone().unwrap_or(usual);
        if !Lab::may_be_called(&name) {
            let what = format!(
                "{name:?} cannot be a lab's name: give --name with up to 40 letters, digits, -, _ and ."
            );
            return Err(usage(what));
        }
        let blueprint =
            Blueprint::new(&graph).map_err(|error| usage(format!("{}: {error}", arguments.what)))?;
        Ok(Self { name, blueprint })
    }
}

fn usage(what: String) -> anyhow::Error {
    Failure::new(Exit::Usage, what).into()
}

/// The network, and what a lab of it is called unless somebody says otherwise.
fn graph(arguments: &LabUp) -> Result<(String, Graph)> {
    let what = arguments.what.as_str();
    let path = Path::new(what);
    if path.extension().is_some_and(|extension| extension == "toml") {
        let source = fs::read_to_string(path).with_context(|| what.to_owned())?;
        return Ok((called_after(path), of_plan(arguments, what, &source)?));
    }
    let experiments = Where { experiments: arguments.experiments.clone(), ..Where::default() };
    let experiment = place::experiments(&experiments)?.into_iter().find(|experiment| experiment.id == what);
    if let Some(plan) = experiment.and_then(|experiment| experiment.plan) {
        return Ok((what.to_owned(), of_plan(arguments, &format!("{what}/plan.toml"), &plan)?));
    }
    if KNOWN.iter().any(|known| known.name == what) {
        let mut parameters = Parameters::new(arguments.seed);
        for (name, value) in &arguments.set {
            parameters.set(name, *value);
        }
        let graph = named(what, &parameters).map_err(|error| usage(error.to_string()))?;
        return Ok((what.to_owned(), graph));
    }
    let sentence = format!(
        "{what} is no experiment with a plan (`byway lab list`) and no topology (`byway lab topologies`); a plan's file ends in .toml"
    );
    Err(Failure::new(Exit::NotFound, sentence).into())
}

/// The network of the variant that was asked for.
fn of_plan(arguments: &LabUp, file: &str, source: &str) -> Result<Graph> {
    if let Some((name, _)) = arguments.set.first() {
        return Err(usage(format!("--set {name}: a plan has its own parameters; --set is for topologies")));
    }
    let overrides = Overrides { seeds: None, sweep: arguments.sweep.clone() };
    let plan = Plan::read_network(file, source, &overrides).map_err(|error| usage(error.to_string()))?;
    let [setup] = plan.variants.as_slice() else {
        let wide = plan.axes.iter().filter(|axis| axis.labels.len() > 1);
        let choices: Vec<_> =
            wide.map(|axis| format!("--sweep {}={}", axis.name, axis.labels.join("|"))).collect();
        let sentence = format!(
            "{file} has {} variants and a lab is one: choose by {}",
            plan.variants.len(),
            choices.join(" ")
        );
        return Err(usage(sentence));
    };
    world::graph(setup, arguments.seed).map_err(|error| usage(format!("{file}: {error}")))
}

/// The file without its extension; a plan.toml is called after its folder.
fn called_after(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = || path.canonicalize().ok()?.parent()?.file_name()?.to_str().map(str::to_owned);
    if stem == "plan" { folder().unwrap_or_else(|| stem.to_owned()) } else { stem.to_owned() }
}
