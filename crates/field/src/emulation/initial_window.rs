//! Sets the initial window of the kernel's TCP to the number of packets that the plan says. In
//! Linux the initial window is an attribute of a route (`initcwnd`). So it is set on the sender's
//! route to the receiver.

use super::detours::{FIRST_TABLE, through};
use super::run_lab::{RunLab, set_routes};
use super::utp;
use crate::error::{Error, Result};
use byway_lab::Setup;
use byway_lab::setup::{Carrier, NodeChoice};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// For each sender, receiver and routing table: the initial window in packets.
type Beginnings<'a> = BTreeMap<(&'a str, &'a str, String), u32>;

/// Returns the initial windows that a plan sets. An error: the kernel cannot set them.
///
/// # Errors
/// It says two things of one route.
pub(super) fn of(setup: &Setup) -> Result<Beginnings<'_>, String> {
    let mut all = Beginnings::new();
    let mut add = |from, to, table: String, packets| match all.insert((from, to, table), packets) {
        Some(before) if before != packets => Err(format!(
            "from {from} to {to} the kernel's TCP would begin with {before} packets and with {packets} (initial_window), \
             and a route knows one number"
        )),
        _ => Ok(()),
    };
    for (place, transfer) in setup.transfers.iter().enumerate() {
        let (Carrier::Tcp(tcp) | Carrier::Gateways(tcp, _)) = &transfer.carrier else { continue };
        if transfer.congestion.name == utp::CONTROLLER_NAME {
            continue;
        }
        let (NodeChoice::Node(from), NodeChoice::Node(to)) = (&transfer.from, &transfer.to) else { continue };
        let table =
            through(transfer).map_or_else(|| "main".to_owned(), |_| (FIRST_TABLE + place as u32).to_string());
        add(from.as_str(), to.as_str(), table, tcp.initial_window)?;
    }
    for requests in &setup.requests {
        add(&requests.server, &requests.client, "main".to_owned(), requests.tcp.initial_window)?;
    }
    Ok(all)
}

/// Sets the initial windows on the routes of a variant.
pub(super) fn set_up(site: &RunLab, setup: &Setup) -> Result<()> {
    let mut scripts: BTreeMap<&str, String> = BTreeMap::new();
    for ((from, to, table), packets) in of(setup).map_err(Error::Failed)? {
        let to = site.address(to)?;
        let _ = writeln!(
            scripts.entry(from).or_default(),
            "ip route change $(ip route show {to}/32 table {table}) table {table} initcwnd {packets}"
        );
    }
    set_routes(site, scripts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_lab::plan::{Mode, Overrides, Plan};

    fn setup(more: &str) -> Setup {
        let text = format!(
            "title = \"t\"\nduration = \"5 s\"\nseeds = 1\n
             [[link]]\nbetween = [\"a\", \"x\"]\n[[link]]\nbetween = [\"x\", \"b\"]\n[[link]]\nbetween = [\"a\", \"b\"]\n
             [[transfer]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\ncarrier = \"tcp\"\ncongestion = \"cubic\"\n{more}"
        );
        let plan = Plan::read("t.toml", &text, Mode::All, &Overrides::default()).unwrap().unwrap();
        plan.variants.into_iter().next().unwrap()
    }

    const ASKED: &str =
        "[[requests]]\nname = \"web\"\nclient = \"b\"\nserver = \"a\"\ncount = 3\nevery = \"1 s\"
                         size = \"20 KB\"\ntcp = { initial_window = 10 }\n";

    #[test]
    fn a_detour_has_a_route_of_its_own_and_one_route_begins_in_one_way() {
        let detour = setup(&format!("paths = [\"x\"]\n{ASKED}"));
        let all: Vec<_> = of(&detour).unwrap().into_iter().collect();
        let (table, main) = (FIRST_TABLE.to_string(), "main".to_owned());
        assert_eq!(all, [(("a", "b", table), 2), (("a", "b", main), 10)]);
        let direct = setup(&format!("paths = [\"direct\"]\n{ASKED}"));
        assert!(of(&direct).unwrap_err().contains("with 2 packets and with 10"));
        let alike = setup(&format!("paths = [\"direct\"]\ntcp = {{ initial_window = 10 }}\n{ASKED}"));
        assert_eq!(of(&alike).unwrap().len(), 1);
    }
}
