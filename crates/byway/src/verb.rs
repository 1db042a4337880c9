//! The verbs: each turns its arguments into work for the crates below and tells [`Output`] what happens.

mod again;
mod demo;
mod gateway;
mod id;
mod lab;
mod manual;
mod ping;
mod reach;
mod recv;
mod relay;
mod send;
mod show;
mod toggle;

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::output::Output;
use anyhow::Result;

/// Runs what was asked for.
pub fn run(cli: &Cli, output: &mut Output) -> Result<Exit> {
    match &cli.command {
        Command::Demo(arguments) => demo::run(arguments, output),
        Command::Id(_) => id::run(&cli.global, output),
        Command::Send(arguments) => send::run(&cli.global, arguments, output),
        Command::Relay(arguments) => relay::run(&cli.global, arguments, output),
        Command::Ping(arguments) => ping::run(&cli.global, arguments, output),
        Command::Gateway(arguments) => gateway::run(&cli.global, arguments, output),
        Command::Lab(arguments) => lab::run(arguments, output),
        Command::Completions(arguments) => manual::completions(arguments),
        Command::Man(arguments) => manual::man(arguments),
        Command::Recv(arguments) => recv::run(&cli.global, arguments, output),
    }
}
