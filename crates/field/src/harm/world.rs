//! The plan of a measurement. A web server and a source of bulk data share one link to the clients
//! and the receivers.

use crate::error::{OrFailed as _, Result};
use byway_control::SenderKind;
use byway_lab::Setup;
use byway_lab::plan::{Mode, Overrides, Plan};
use serde_json::json;

/// Bytes of a request's answer.
const ANSWER_SIZE: &str = "20 KB";
/// Milliseconds between two requests, on average.
pub(super) const REQUEST_INTERVAL_MS: u32 = 200;
/// Seconds until the transfers begin. All programs are ready by then.
const PREPARATION_SECONDS: u32 = 4;
/// Seconds in which only transfers use the link, before the first request.
const ALONE_SECONDS: u32 = 10;
/// Seconds that transfers have the link for themselves after the requests: one bound more than they
/// need.
const RECOVERY_SECONDS: u32 = 12;

/// The link over which clients make requests.
#[derive(Clone, Copy, Debug)]
pub struct AccessLink {
    /// The line's rate in Mbit/s.
    pub mbit: u32,
    /// The line's round-trip time in milliseconds.
    pub rtt_ms: u32,
    /// The queue limit of the link in packets.
    pub queue: u32,
}

/// The kind of the bulk transfers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rival {
    /// The kernel's TCP, or libtorrent's µTP as `ledbat`, by the controller.
    Tcp(String),
    /// `byway send` and `byway recv`, by the controller.
    Byway(String),
    /// The kernel's CUBIC between hosts behind two `byway gateway`, by the session's controller.
    Gateways(String),
}

impl Rival {
    /// Returns the rival that a name on the command line means.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        // What the class `background` is.
        let (who, controller) = name.split_once(':').unwrap_or((name, "background"));
        let own = match who {
            "cubic" | "bbr" | "reno" | "ledbat" if who == name => return Ok(Self::Tcp(name.to_owned())),
            "byway" => Self::Byway,
            "gateways" => Self::Gateways,
            _ => {
                return Err(format!(
                    "nobody is called {name}: there are cubic, bbr, reno, ledbat, byway, gateways, byway:CONTROLLER and gateways:CONTROLLER"
                ));
            }
        };
        let made =
            controller.parse().and_then(|choice| byway_control::controller(&choice, SenderKind::Session, 1));
        made.map(|_| own(controller.to_owned())).map_err(|error| error.to_string())
    }

    /// Whether the bounds apply to the rival: it is byway's background class in any form.
    pub(super) fn is_judged(&self) -> bool {
        match self {
            Self::Byway(controller) | Self::Gateways(controller) => controller == "background",
            Self::Tcp(_) => false,
        }
    }
}

/// Returns the duration of a run in seconds.
pub(super) fn seconds(requests: u32) -> u32 {
    PREPARATION_SECONDS + ALONE_SECONDS + (requests * REQUEST_INTERVAL_MS).div_ceil(1_000) + RECOVERY_SECONDS
}

/// Returns the plan of a run: `requests` requests beside `bulk`, or alone.
///
/// # Errors
/// If it cannot be written as TOML.
pub(super) fn plan(link: AccessLink, requests: u32, bulk: Option<(&Rival, u32)>) -> Result<String> {
    let seconds = seconds(requests);
    let AccessLink { mbit, rtt_ms, queue } = link;
    // Behind a gateway of its own, if there is one.
    let beside = if matches!(bulk, Some((Rival::Gateways(_), _))) { "left" } else { "near" };
    let mut links = vec![
        json!({ "between": ["web", "near"] }),
        json!({ "between": ["source", beside] }),
        json!({
            "between": ["near", "far"],
            "rate": format!("{mbit} Mbit/s"),
            "delay": format!("{} us", rtt_ms * 500),
            "queue": format!("{queue} packets"),
        }),
    ];
    // In the simulator, hosts that do as the kernel does.
    let kernel = json!({ "host": "linux" });
    let mut plan = json!({
        "title": "harm",
        "duration": format!("{seconds} s"),
        "sample": "100 ms",
        "seeds": 1,
        "requests": [{
            "name": "requests",
            "client": "far",
            "server": "web",
            "size": ANSWER_SIZE,
            "congestion": "cubic",
            "tcp": kernel,
            "count": requests,
            "every": format!("{REQUEST_INTERVAL_MS} ms"),
            "poisson": true,
            "start": format!("{} s", PREPARATION_SECONDS + ALONE_SECONDS),
        }],
    });
    if let Some((rival, count)) = bulk {
        let (carrier, congestion, to) = match rival {
            // As plans call it.
            Rival::Tcp(congestion) if congestion == "reno" => ("tcp", "newreno", "far"),
            Rival::Tcp(congestion) => ("tcp", congestion.as_str(), "far"),
            Rival::Byway(congestion) => ("session", congestion.as_str(), "far"),
            Rival::Gateways(congestion) => {
                for between in [["near", "left"], ["far", "right"], ["right", "sink"]] {
                    links.push(json!({ "between": between }));
                }
                let between = ["left", "right"];
                plan["gateways"] = json!([{ "name": "sites", "between": between, "congestion": congestion }]);
                ("gateways", "cubic", "sink")
            }
        };
        let mut transfer = json!({
            "name": "bulk",
            "from": "source",
            "to": to,
            "start": format!("{PREPARATION_SECONDS} s"),
            "count": count,
            "carrier": carrier,
            "congestion": congestion,
        });
        if carrier != "gateways" {
            transfer["paths"] = json!(["direct"]);
        }
        if carrier == "session" {
            // Datagrams are as large as the link takes them, as they would be.
            transfer["session"] = json!({ "datagram": 1472 });
        } else {
            transfer["tcp"] = kernel;
        }
        if matches!(rival, Rival::Byway(_)) || congestion == "ledbat" {
            // Files and torrents have an end. More than the link can carry in that time: none ends
            // before the others.
            transfer["size"] = json!(format!("{} KB", mbit * 125 * seconds));
        }
        plan["transfer"] = json!([transfer]);
    }
    plan["link"] = json!(links);
    Ok(toml::to_string(&plan)?)
}

/// Returns the only variant of such a plan.
pub(super) fn setup(file: &str, text: &str) -> Result<Setup> {
    let plan = Plan::read(file, text, Mode::All, &Overrides::default())?;
    plan.and_then(|plan| plan.variants.into_iter().next()).or_failed(|| "a plan without a variant")
}

#[cfg(test)]
mod tests {
    use super::*;
    use byway_lab::setup::{Carrier, Demand};
    use core::time::Duration;

    const LINK: AccessLink = AccessLink { mbit: 10, rtt_ms: 25, queue: 50 };

    #[test]
    fn the_same_requests_are_made_alone_and_beside_whom_it_may_be() {
        let alone = setup("alone", &plan(LINK, 300, None).unwrap()).unwrap();
        assert_eq!((alone.duration, alone.transfers.len()), (Duration::from_secs(86), 0));
        let list = byway_lab::world::requests(&alone.requests[0], 1, alone.duration);
        assert_eq!(list.len(), 300);
        for name in ["cubic", "bbr", "reno", "ledbat", "byway", "byway:mpath", "gateways", "gateways:mpath"] {
            let rival = Rival::named(name).unwrap();
            let beside = setup(name, &plan(LINK, 300, Some((&rival, 8))).unwrap()).unwrap();
            assert_eq!(beside.transfers.len(), 8, "{name}");
            assert_eq!(byway_lab::world::requests(&beside.requests[0], 1, beside.duration), list, "{name}");
            // Whoever can be emulated can be simulated.
            let (congestion, host) =
                (&beside.transfers[0].congestion, SenderKind::Linux { initial_window: 10 });
            assert!(byway_control::controller(congestion, host, 1).is_ok(), "{name}");
            let session = matches!(beside.transfers[0].carrier, Carrier::Session(_));
            assert_eq!(session, name.starts_with("byway"), "{name}");
            let gateways = matches!(beside.transfers[0].carrier, Carrier::Gateways(..));
            assert_eq!(
                (gateways, beside.gateways.len()),
                (name.starts_with("gateways"), usize::from(gateways))
            );
            assert_eq!(rival.is_judged(), ["byway", "gateways"].contains(&name), "{name}");
            let sized = session || name == "ledbat";
            assert_eq!(sized, beside.transfers[0].demand == Demand::Size(107_500_000), "{name}");
        }
    }

    #[test]
    fn who_is_unknown_is_told() {
        for (name, says) in [
            ("lia", "nobody is called lia"),
            ("byway:lion", "no congestion controller `lion`"),
            ("byway:hir:lion=1", "hir has no option lion"),
            ("cubic:lion", "nobody is called cubic:lion"),
        ] {
            let told = Rival::named(name).unwrap_err();
            assert!(told.contains(says), "{told}");
        }
    }
}
