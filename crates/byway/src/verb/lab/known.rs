//! What a plan can name.

use crate::exit::Exit;
use crate::output::{Align, Event, Outcome, Output, Table};
use anyhow::Result;
use byway_control::catalogue;
use byway_sim::topology::KNOWN;

/// `byway lab topologies`
pub(super) fn topologies(output: &mut Output) -> Result<Exit> {
    for known in KNOWN {
        output.answer(&format!("{}: {}", known.name, known.about))?;
        for parameter in known.parameters {
            output.answer(&format!("    {} = {}  {}", parameter.name, parameter.default, parameter.about))?;
        }
    }
    let names = KNOWN.iter().map(|known| known.name.to_owned()).collect();
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Known { names }));
    Ok(Exit::Ok)
}

/// `byway lab controllers`
pub(super) fn controllers(output: &mut Output) -> Result<Exit> {
    let mut table = Table::new([("name", Align::Left), ("what", Align::Left), ("options", Align::Left)]);
    let all = catalogue::names();
    for named in &all {
        let options: Vec<_> = named.options.iter().map(|(name, usual)| format!("{name} = {usual}")).collect();
        table.row([named.name.to_owned(), named.about.to_owned(), options.join(", ")]);
    }
    output.answer(table.to_string().trim_end())?;
    let names = all.iter().map(|named| named.name.to_owned()).collect();
    output.emit(&Event::result("lab", Exit::Ok, Outcome::Known { names }));
    Ok(Exit::Ok)
}
