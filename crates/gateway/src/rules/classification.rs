//! The rule table, and the treatment that it gives to a flow.

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
    /// The rule's name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The action on matching flows.
    pub action: Action,
    /// The side that opened the flow.
    pub direction: Direction,
    /// The protocol of the flow.
    pub protocol: Protocol,
    /// Address of the host that opened the flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Prefix>,
    /// Address of the host to which the flow was opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Prefix>,
    /// Port of the host that opened the flow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from_ports: Vec<Ports>,
    /// Port of the host to which the flow was opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_ports: Vec<Ports>,
    /// Differentiated services code point of the first SYN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<Dscp>,
}

/// The action on a flow.
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
    /// A host on either side.
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
    /// A host behind this gateway opened the flow.
    Here,
    /// A host behind another gateway opened the flow.
    There,
}

/// The decision of the table about a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Classification {
    /// The action on the flow.
    pub action: Action,
    /// The index of the rule that decided. `None`: no rule matched.
    pub rule: Option<usize>,
}

/// Decides about a flow that was opened on the side of `origin`, in the direction of `flow`, by a
/// SYN marked `dscp`.
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
