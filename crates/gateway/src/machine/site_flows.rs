//! The flows of this site: which of them are carried, by the rules, and what is counted of each
//! rule.

use super::carried_flow::{CarriedFlow, CarriedFlows};
use super::config::Settings;
use super::index_vec::{PeerIdx, TypedIndex as _};
use super::observed_flows::ObservedFlows;
use super::peer::{behind, speaker};
use super::rule_counters::{FlowStatus, RuleCount, RuleCounts};
use super::status::{Counters, RuleStatus};
use super::tunnels::PeerSessions;
use crate::flow_table::{FlowTable, FlowTableLimits, FlowVerdict};
use crate::key::FlowKey;
use crate::rules::{Action, FlowOrigin, Rule, Rules, classify};
use crate::tcp_segment::Segment;
use alloc::vec::Vec;
use byway_wire::Instant;

/// The most flows that a status lists one by one: the largest.
const MAX_NAMED_FLOWS: usize = 20;

/// The decision about a segment from a host of this site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostSegment {
    /// The flow of the packet is carried, or takes the plain route.
    Seen(FlowVerdict),
    /// The flow of the packet would be carried, and waits for the session.
    Held,
}

/// The flows of a gateway.
#[derive(Debug)]
pub(super) struct Flows {
    pub table: CarriedFlows,
    pub tallies: RuleCounts,
    rules: Rules,
    /// Flows that would be carried, where the gateway only observes.
    observed_flows: ObservedFlows,
    counters: Counters,
}

impl Flows {
    /// A table without flows yet.
    pub fn new(rules: Rules, limits: FlowTableLimits) -> Self {
        Self {
            table: FlowTable::new(limits),
            tallies: RuleCounts::new(&rules),
            rules,
            observed_flows: ObservedFlows::new(limits.flows),
            counters: Counters::default(),
        }
    }

    /// The counts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Replaces the rules. Flows that are already carried stay carried.
    pub fn set_rules(&mut self, rules: Rules) {
        let moved = self.tallies.replace(&self.rules, &rules);
        let place = |rule: &mut Option<usize>| {
            *rule = rule.and_then(|rule| moved.get(rule).copied().flatten());
        };
        self.table.iter_mut().for_each(|flow| place(&mut flow.data.rule));
        self.observed_flows.replace(place);
        self.rules = rules;
    }

    /// Handles a segment of a host of this site. The rules decide about a flow that the host opens.
    pub fn on_sent(
        &mut self,
        now: Instant,
        segment: &Segment,
        links: &mut PeerSessions,
        settings: &Settings,
    ) -> HostSegment {
        let Self { table, tallies, rules, counters, .. } = self;
        let mut held = false;
        let seen = table.on_segment(now, segment, |key| {
            let verdict = classify(rules, key, FlowOrigin::Here, segment.ip.dscp);
            if verdict.action == Action::Pass {
                if verdict.rule.is_some() {
                    tallies.on_flow(verdict.rule);
                }
                return None;
            }
            let far = (key.destination, key.destination_port);
            let announced = links.directory.find(far.0, far.1);
            let index = announced.or_else(|| behind(&links.directory, &links.peers, far))?;
            let peer = &mut links.peers[index];
            let reached = announced.is_some() && links.tunnels[peer.site].session().is_some();
            // With the setting `fail_closed`, a segment to a host that a peer may serve must go
            // through a session with the peer. If there is no session, or the peer has not
            // announced the host, the segment is dropped. TCP will retransmit it.
            held = settings.fail_closed && !settings.observe && !reached;
            if held {
                return None;
            }
            counters.flows += 1;
            if settings.observe || !reached {
                counters.flows_left += 1;
                return None;
            }
            tallies.on_flow(verdict.rule);
            peer.label = peer.label.next();
            Some(CarriedFlow::new(index, peer.site, verdict.rule, peer.label))
        });
        match seen {
            FlowVerdict::PassThrough(_) if held => HostSegment::Held,
            seen => HostSegment::Seen(seen),
        }
    }

    /// Enters a segment that came from a peer. A flow that the peer carries is carried here as
    /// well, whatever the rules of this gateway say. The rules only determine in which rule's
    /// counters the flow is counted.
    pub fn on_received(
        &mut self,
        now: Instant,
        segment: &Segment,
        from: PeerIdx,
        links: &mut PeerSessions,
    ) -> FlowVerdict {
        let Self { table, tallies, rules, .. } = self;
        table.on_segment(now, segment, |key| {
            let peer = &mut links.peers[from];
            peer.label = peer.label.next();
            let verdict = classify(rules, key, FlowOrigin::There, segment.ip.dscp);
            let rule = verdict.rule.filter(|_| verdict.action == Action::Background);
            tallies.on_flow(rule);
            Some(CarriedFlow::new(from, peer.site, rule, peer.label))
        })
    }

    /// Counts a segment of a flow that would be carried, while the gateway only observes.
    pub fn observe(&mut self, segment: &Segment, links: &PeerSessions) {
        let Self { observed_flows, rules, tallies, .. } = self;
        let want = |key: &FlowKey, origin| {
            let verdict = classify(rules, key, origin, segment.ip.dscp);
            if verdict.action == Action::Pass {
                return None;
            }
            let peer = match origin {
                FlowOrigin::Here => {
                    behind(&links.directory, &links.peers, (key.destination, key.destination_port))?
                }
                // Whoever opened it has any port, and not one that is served.
                FlowOrigin::There => speaker(&links.peers, key.source, |_| true)?,
            };
            Some((verdict.rule, peer.index()))
        };
        observed_flows.on_segment(segment, want, tallies);
    }

    /// Returns the largest flows that the gateway carries or, while it only observes, would carry.
    pub fn largest(&self) -> Vec<FlowStatus> {
        let carried = self.table.iter().map(|flow| {
            let data = &flow.data;
            FlowStatus {
                key: flow.key,
                rule: data.rule,
                peer: data.peer.index(),
                sent: data.sent,
                received: data.received,
            }
        });
        let mut all: Vec<FlowStatus> = carried.chain(self.observed_flows.flows()).collect();
        all.sort_by_key(|flow| core::cmp::Reverse(flow.sent.saturating_add(flow.received)));
        all.truncate(MAX_NAMED_FLOWS);
        all
    }

    /// The counts of each rule in order, and of flows that only the peer's rules carry.
    pub fn decided(&self) -> (Vec<RuleStatus>, RuleCount) {
        let (tallies, others) = self.tallies.all();
        let rule = |(rule, tally): (&Rule, RuleCount)| RuleStatus {
            name: rule.name.clone(),
            action: rule.action,
            tally,
        };
        (self.rules.rules.iter().zip(tallies).map(rule).collect(), others)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Parts, parts, segment};
    use super::*;
    use crate::flow_table::EndCause;

    const NOW: Instant = Instant::from_millis(5);

    #[test]
    fn a_flow_that_no_peer_can_carry_takes_the_plain_route_or_waits() {
        let (_, syn) = segment("S", 1, b"");
        let plain = HostSegment::Seen(FlowVerdict::PassThrough(EndCause::Unwanted));
        for (fail_closed, observe, expected, counted) in
            [(false, false, plain, 1), (true, false, HostSegment::Held, 0), (true, true, plain, 1)]
        {
            let settings = Settings { fail_closed, observe, ..Settings::default() };
            let Parts { mut flows, mut links, .. } = parts(settings);
            assert_eq!(flows.on_sent(NOW, &syn, &mut links, &settings), expected);
            let counters = flows.counters();
            assert_eq!((counters.flows, counters.flows_left), (counted, counted));
            assert_eq!(
                flows.decided().0[0].tally,
                RuleCount::default(),
                "what is left alone is not the rule's"
            );
        }
    }

    #[test]
    fn a_flow_from_a_peer_is_carried_whatever_the_rules_say() {
        let Parts { mut flows, mut links, peer, site, .. } = parts(Settings::default());
        flows.set_rules(Rules::default());
        let (_, syn) = segment("S", 1, b"");
        let FlowVerdict::Carried { flow, new: true, .. } = flows.on_received(NOW, &syn, peer, &mut links)
        else {
            panic!("not taken")
        };
        let data = &flows.table.get(flow).unwrap().data;
        assert_eq!((data.peer, data.tunnel, data.label.number()), (peer, site, 8));
        assert_eq!((flows.decided().1.flows, flows.largest().len()), (1, 1));
    }

    #[test]
    fn what_would_be_carried_is_counted() {
        let Parts { mut flows, links, .. } = parts(Settings::default());
        flows.observe(&segment("S", 1, b"").1, &links);
        flows.observe(&segment("A", 2, b"data").1, &links);
        assert_eq!(flows.decided().0[0].tally, RuleCount { flows: 1, bytes: 4 });
        assert_eq!(flows.largest()[0].sent, 4);
    }
}
