//! Lists the names that a plan can use, and adds a controller to them.

use crate::args::lab::LabNewController;
use crate::exit::Exit;
use crate::output::{Align, Event, Fields, Outcome, Output, Table};
use anyhow::Result;
use byway_control::catalogue;
use byway_field::new_controller;
use byway_sim::topology::KNOWN_TOPOLOGIES;
use std::path::Path;

/// `byway lab topologies`
pub(super) fn topologies(output: &mut Output) -> Result<Exit> {
    for known in KNOWN_TOPOLOGIES {
        output.answer_lines(&format!("{}: {}", known.name, known.about))?;
        for parameter in known.parameters {
            output.answer_lines(&format!(
                "    {} = {}  {}",
                parameter.name, parameter.default, parameter.about
            ))?;
        }
    }
    tell(KNOWN_TOPOLOGIES.iter().map(|known| known.name), output);
    Ok(Exit::Ok)
}

/// `byway lab controllers`
pub(super) fn controllers(output: &mut Output) -> Result<Exit> {
    output.answer_table(&table_of(&catalogue::names()))?;
    tell(catalogue::names().iter().map(|named| named.name), output);
    Ok(Exit::Ok)
}

/// `byway lab new-controller`
pub(super) fn new_controller(arguments: &LabNewController, output: &mut Output) -> Result<Exit> {
    let name = &arguments.name;
    new_controller::write(Path::new("."), name, arguments.byway.as_deref())?;
    output
        .say_lines(&format!("the law is in {name}/src/lib.rs; {name}/README.md says how to test and run it"));
    tell([name.as_str()].into_iter(), output);
    Ok(Exit::Ok)
}

/// The names that a plan can use, as JSON.
fn tell<'a>(names: impl Iterator<Item = &'a str>, output: &mut Output) {
    let names: Vec<&str> = names.collect();
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Told(Fields::one("names", &names))));
}

fn table_of(all: &[catalogue::ControllerInfo]) -> Table {
    let mut table = Table::new([("name", Align::Left), ("what", Align::Left), ("options", Align::Left)]);
    for named in all {
        let options: Vec<_> = named.options.iter().map(|(name, usual)| format!("{name}={usual}")).collect();
        table.row([named.name.to_owned(), named.about.to_owned(), options.join(", ")]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_fit_the_screen() {
        let table = table_of(&catalogue::names());
        for columns in [60, 80, 100] {
            let text = table.fit(columns);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns, "{widest} columns on a screen of {columns}:\n{text}");
        }
    }
}
