//! An endpoint that can dial TCP.

use byway_engine::{Connection, Endpoint, Handle};
use byway_wire::{Input, Instant, Local, Machine, TcpRequest, Transmit, TransmitBuffer};
use std::collections::VecDeque;

/// An endpoint whose owner may ask for TCP connections.
pub(super) struct DialingEndpoint {
    endpoint: Endpoint,
    requests: VecDeque<TcpRequest>,
}

impl DialingEndpoint {
    pub(super) const fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, requests: VecDeque::new() }
    }

    /// A session of the endpoint.
    pub(super) fn connection(&self, handle: Handle) -> Option<&Connection> {
        self.endpoint.connection(handle)
    }

    /// The endpoint of all sessions.
    pub(super) const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Asks the operating system for a TCP connection.
    pub(super) fn request(&mut self, request: TcpRequest) {
        self.requests.push_back(request);
    }
}

impl Machine for DialingEndpoint {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.endpoint.handle(now, input);
    }

    fn wake(&mut self, now: Instant) {
        self.endpoint.wake(now);
    }

    fn transmit(&mut self, now: Instant, out: &mut TransmitBuffer<'_>) -> Option<Transmit> {
        self.endpoint.transmit(now, out)
    }

    fn deadline(&self) -> Option<Instant> {
        self.endpoint.deadline()
    }

    fn serves(&self, local: Local) -> bool {
        self.endpoint.serves(local)
    }

    fn ask(&mut self, now: Instant) -> Option<TcpRequest> {
        self.requests.pop_front().or_else(|| self.endpoint.ask(now))
    }
}
