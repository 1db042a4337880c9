//! The verbs: each turns its arguments into work for the crates below and tells [`Output`] what
//! happens.

#[cfg(feature = "demo")]
mod demo;
mod directory_use;
mod dry_run;
mod forward;
mod forward_stdio;
#[cfg(feature = "gateway")]
mod gateway;
mod id;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lane")]
mod lane;
mod lending;
mod limit;
mod limit_control;
#[cfg(feature = "help")]
mod manual;
#[cfg(feature = "pairing")]
mod pair;
mod peer;
mod ping;
mod recv;
#[cfg(feature = "registry")]
mod registry;
mod relay;
mod relay_words;
mod relays;
mod resume_command;
mod retry;
mod send;
mod sink;
mod source;
mod source_relays;
mod status;
mod tasks;
mod transfer_events;
#[cfg(feature = "view")]
mod view;

use crate::args::{Cli, Command};
use crate::exit::{Exit, sentence};
use crate::output::Output;
use anyhow::Result;

/// Runs the verb of the command line.
pub fn run(cli: &Cli, output: &mut Output) -> Result<Exit> {
    // These have nothing from the files, or tell what is wrong with them.
    let spared = matches!(
        cli.command,
        Command::Peer(_) | Command::Config(_) | Command::Completions(_) | Command::Man(_)
    );
    if !spared {
        cli.global.usable()?;
    }
    match &cli.command {
        #[cfg(feature = "demo")]
        Command::Demo(arguments) => demo::run(arguments, output),
        #[cfg(not(feature = "demo"))]
        Command::Demo(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_DEMO),
        Command::Id(_) => id::run(&cli.global, output),
        Command::Send(arguments) => send::run(&cli.global, arguments, output),
        Command::Tasks(arguments) => tasks::run(arguments, output),
        Command::Forward(arguments) => forward::run(&cli.global, arguments, output),
        #[cfg(feature = "lane")]
        Command::Lane(arguments) => lane::run(arguments, output),
        #[cfg(not(feature = "lane"))]
        Command::Lane(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_LANE),
        Command::Relay(arguments) => relay::run(&cli.global, arguments, output),
        Command::Sink(arguments) => sink::run(&cli.global, arguments, output),
        Command::Source(arguments) => source::run(&cli.global, arguments, output),
        Command::Ping(arguments) => ping::run(&cli.global, arguments, output),
        Command::Peer(arguments) => peer::run(&cli.global, arguments, output),
        #[cfg(feature = "pairing")]
        Command::Pair(arguments) => pair::run(&cli.global, arguments, output),
        #[cfg(not(feature = "pairing"))]
        Command::Pair(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_PAIRING),
        Command::Config(_) => peer::check(&cli.global, output),
        Command::Status(arguments) => status::run(&cli.global, arguments, output),
        Command::Limit(arguments) => limit::run(arguments, output),
        #[cfg(feature = "view")]
        Command::View(arguments) => view::run(&cli.global, arguments, output),
        #[cfg(not(feature = "view"))]
        Command::View(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_VIEW),
        #[cfg(feature = "gateway")]
        Command::Gateway(arguments) => gateway::run(&cli.global, arguments, output),
        #[cfg(not(feature = "gateway"))]
        Command::Gateway(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_GATEWAY),
        #[cfg(feature = "lab")]
        Command::Lab(arguments) => lab::run(arguments, output),
        #[cfg(not(feature = "lab"))]
        Command::Lab(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_LAB),
        #[cfg(feature = "help")]
        Command::Completions(arguments) => manual::completions(arguments),
        #[cfg(feature = "help")]
        Command::Man(arguments) => manual::man(arguments),
        #[cfg(not(feature = "help"))]
        Command::Completions(_) | Command::Man(_) => {
            crate::exit::absent(crate::messages::disabled_verbs::NO_PAGES)
        }
        #[cfg(feature = "registry")]
        Command::Registry(arguments) => registry::run(&cli.global, arguments, output),
        #[cfg(not(feature = "registry"))]
        Command::Registry(_) => crate::exit::absent(crate::messages::disabled_verbs::NO_REGISTRY),
        Command::Relays(arguments) => relays::run(&cli.global, arguments, output),
        Command::Recv(arguments) => recv::run(&cli.global, arguments, output),
    }
}

/// Reports how `verb` ended, to the person or to the program that asked, and returns the exit code.
pub fn conclude(verb: &'static str, outcome: Result<Exit>, output: &mut Output) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(error) => {
            let exit = Exit::of(&error);
            if exit != Exit::Ok {
                output.failed(verb, exit, &sentence(&error));
            }
            exit
        }
    }
}
