//! The table, and what it says of a flow.

use super::dscp::Dscp;
use crate::key::FlowKey;
use crate::ports::Ports;
use alloc::string::String;
use alloc::vec::Vec;
use byway_wire::Prefix;
use serde::{Deserialize, Serialize};

/// The whole table. Flows that no rule matches pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// The rules in their order.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// One rule of the file. An empty list means any.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What becomes of flows that match.
    pub action: Action,
    /// The side that opened the flow.
    pub direction: Direction,
    /// The protocol of the flow.
    pub protocol: Protocol,
    /// Address of the host that opened the flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Prefix>,
    /// Address of the host that it was opened to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Prefix>,
    /// Port of the host that opened the flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from_ports: Vec<Ports>,
    /// Port of the host that it was opened to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_ports: Vec<Ports>,
    /// Differentiated services code point of the first SYN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Dscp>,
}

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// The session carries the flow, behind everything else.
    #[default]
    Background,
    /// The flow goes by the plain route, untouched.
    Pass,
}

/// The side that opened a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// A host behind this gateway.
    Outbound,
    /// A host behind another gateway.
    Inbound,
    /// Either side opened it.
    #[default]
    Both,
}

/// The protocols that a rule can speak of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP: all that is carried.
    #[default]
    Tcp,
}

/// On which side of the gateway a flow was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowOrigin {
    /// By a host behind this gateway.
    Here,
    /// By a host elsewhere.
    There,
}

/// What the table says of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// What becomes of it.
    pub action: Action,
    /// The rule that said so, by its place; `None` if no rule matched.
    pub rule: Option<usize>,
}

/// What becomes of a flow that was opened on the side of `origin`, in the direction of `flow`, with
/// a SYN marked `dscp`.
#[must_use]
pub fn classify(rules: &Rules, flow: &FlowKey, origin: FlowOrigin, dscp: u8) -> Classification {
    let matching = |(_, rule): &(usize, &Rule)| rule.matches(flow, origin, dscp);
    match rules.rules.iter().enumerate().find(matching) {
        Some((place, rule)) => Classification { action: rule.action, rule: Some(place) },
        None => Classification { action: Action::Pass, rule: None },
    }
}

impl Rule {
    /// Whether the rule speaks of this flow. The flow is known to be TCP.
    #[must_use]
    pub fn matches(&self, flow: &FlowKey, origin: FlowOrigin, dscp: u8) -> bool {
        let opened = match self.direction {
            Direction::Both => true,
            Direction::Outbound => origin == FlowOrigin::Here,
            Direction::Inbound => origin == FlowOrigin::There,
        };
        opened
            && one_of(&self.from, |prefix| prefix.contains(flow.source))
            && one_of(&self.to, |prefix| prefix.contains(flow.destination))
            && one_of(&self.from_ports, |ports| ports.contains(flow.source_port))
            && one_of(&self.to_ports, |ports| ports.contains(flow.destination_port))
            && one_of(&self.dscp, |listed| listed.number() == dscp)
    }
}

fn one_of<T>(list: &[T], matches: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(matches)
}
