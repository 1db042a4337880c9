//! Whether real programs, and those that are here, can do what a variant asks for.

use super::{gateways, initial_window, utp};
use byway_lab::Setup;
use byway_lab::setup::{Attack, Carrier, Changed, Demand, NodeChoice, PathChoice, Transfer};

/// Controllers of simulated TCP hosts, and the kernel's names of similar ones.
const KERNEL_CONTROLLERS: [(&str, &str); 4] =
    [("newreno", "reno"), ("reno", "reno"), ("cubic", "cubic"), ("bbr", "bbr")];
const NO_OPTIONS: &str = "the kernel's TCP has no options of its controllers";

/// Checks that real programs can do all that a variant requires.
pub(super) fn check(setup: &Setup) -> Result<(), String> {
    for requests in &setup.requests {
        if kernel(&requests.congestion.name).is_none() {
            return Err(format!("[[requests]] {}: {}", requests.name, unknown(&requests.congestion.name)));
        }
        if !requests.congestion.options.is_empty() {
            return Err(format!("[[requests]] {}: {NO_OPTIONS}", requests.name));
        }
    }
    if let Some(cross) = setup.cross.first() {
        return Err(format!("[[cross]] {}: there is no program for it yet", cross.name));
    }
    for change in &setup.changes {
        let what = match change.what {
            Changed::Link { .. } => continue,
            Changed::Relay { .. } => "relays that crash",
            Changed::Udp { .. } => "links that drop UDP",
            Changed::End { .. } => "hosts that change",
            Changed::Registry { .. } => "registries that are suspended",
        };
        return Err(format!("[[change]]: {what} are only simulated"));
    }
    if setup.network.links.iter().any(|link| link.spec.bleaches) {
        return Err("[[link]]: links that clear ECN marks are only simulated".into());
    }
    if setup.attack != Attack::default() {
        return Err("[attack]: attackers are only simulated".into());
    }
    if setup.early_wakes > 0.0 {
        return Err("early_wakes: hosts that wake early are only simulated".into());
    }
    gateways::check(setup)?;
    initial_window::of(setup)?;
    setup.transfers.iter().try_for_each(|transfer| {
        possible(transfer).map_err(|why| format!("[[transfer]] {}: {why}", transfer.name))
    })
}

fn possible(transfer: &Transfer) -> Result<(), String> {
    let (NodeChoice::Node(_), NodeChoice::Node(_)) = (&transfer.from, &transfer.to) else {
        return Err("ends chosen by the seed are only simulated".into());
    };
    if matches!(&transfer.demand, Demand::Rate(steps) if steps.len() > 1) {
        return Err("a demand that changes is only simulated".into());
    }
    let name = transfer.congestion.name.as_str();
    match &transfer.carrier {
        Carrier::Tcp(_) | Carrier::Gateways(..) if !transfer.congestion.options.is_empty() => {
            Err(NO_OPTIONS.into())
        }
        Carrier::Tcp(_) if transfer.paths.len() != 1 => {
            Err("the kernel's TCP has one path: behind gateways it has more (`carrier = \"gateways\"`)"
                .into())
        }
        Carrier::Tcp(_) if matches!(transfer.paths.as_slice(), [PathChoice::Any(..)]) => {
            Err("ways chosen by the seed are only simulated".into())
        }
        Carrier::Tcp(_) if name == utp::CONTROLLER_NAME => utp::check(transfer),
        Carrier::Tcp(_) | Carrier::Gateways(..) => kernel(name).map(drop).ok_or_else(|| unknown(name)),
        Carrier::Session(_) if transfer.paths.iter().any(|way| matches!(way, PathChoice::Any(..))) => {
            Err("relays chosen by the seed are only simulated".into())
        }
        Carrier::Session(_) if transfer.paths.contains(&PathChoice::Registry) => {
            Err("a registry that senders ask is only simulated".into())
        }
        Carrier::Session(options)
            if options.pnack_first_gap || options.ack_direct || options.tau.is_some() =>
        {
            Err("readings of the papers that byway itself does not follow are only simulated".into())
        }
        Carrier::Session(_) => Ok(()),
        Carrier::Exchange(_) => Err("exchanges are only simulated".into()),
        Carrier::TcpRelays(_) => Err("tcp-relays are only simulated".into()),
    }
}

/// Returns the kernel's name of the controller `name`. `None`: the kernel does not have it.
pub(super) fn kernel(name: &str) -> Option<&'static str> {
    KERNEL_CONTROLLERS.iter().find(|(known, _)| *known == name).map(|(_, kernel)| *kernel)
}

fn unknown(name: &str) -> String {
    let known: Vec<_> = KERNEL_CONTROLLERS.iter().map(|(name, _)| *name).collect();
    format!("the kernel's TCP has no {name}: there are {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::check;
    use byway_lab::plan::{Mode, Overrides, Plan};

    #[test]
    fn what_is_only_simulated_is_refused() {
        const LINK: &str = "[[link]]\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\nmtu = \"1400 B\"\n";
        const CHANGE: &str = "[[change]]\nat = \"1 s\"\n";
        const EXCHANGE: &str =
            "[[transfer]]\nname = \"t\"\nfrom = \"A\"\nto = \"B\"\ncarrier = \"exchange\"\nexchange = {}\n";
        let checked = |top: &str, rest: &str| {
            let source = format!("title = \"T\"\nduration = \"9 s\"\n{top}\n{LINK}{rest}");
            let plan = Plan::read("p", &source, Mode::All, &Overrides::default());
            check(&plan.unwrap_or_else(|error| panic!("{error}")).expect("a form").variants[0])
        };
        let end = format!("{CHANGE}transfer = \"t\"\nend = \"sender\"\nwhat = \"move\"\n{EXCHANGE}");
        let udp = format!("{CHANGE}link = [\"A\", \"B\"]\nudp = {{}}");
        let registry = format!("{CHANGE}registry = false\n[registry]\nat = \"A\"\nrelays = [\"B\"]");
        for (top, rest, what) in [
            ("", EXCHANGE, "exchanges are"),
            ("", &end, "hosts that change are"),
            ("", &udp, "links that drop UDP are"),
            ("", &registry, "registries that are suspended are"),
            ("", "bleaches = true", "links that clear ECN marks are"),
            ("attack = { forged = 0.1 }", "", "attackers are"),
            ("early_wakes = 0.1", "", "hosts that wake early are"),
        ] {
            let said = checked(top, rest).expect_err("refused");
            assert!(said.contains(what) && said.contains("only simulated"), "{said}");
        }
        let narrower = format!("mark_above = 5\n{CHANGE}link = [\"A\", \"B\"]\nmtu = \"1300 B\"");
        assert_eq!(checked("", &narrower), Ok(()));
    }
}
