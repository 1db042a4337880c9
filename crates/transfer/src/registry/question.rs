//! One question to a registry, for a person.

use crate::endpoint::endpoint;
use crate::error::Error;
use crate::identity::Identity;
use crate::sockets;
use byway_engine::{Config, Endpoint};
use byway_net::{Clock, LoopControl, Owner};
use byway_registry::message::{Answer, MAX_RELAYS, RelayList, RelayQuery, Request};
use byway_registry::registry_client::{AskError, ClientExchange};
use byway_registry::word::RegistryWord;
use byway_wire::Instant;
use std::net::SocketAddr;

/// Asks a registry which relays it offers to the holder of `word`. Returns at most as many relays
/// as one answer message holds.
///
/// # Errors
/// The system gives no socket or thread. `Ok(Err(…))`: the registry does not answer, or refuses.
pub fn ask(identity: &Identity, word: &RegistryWord) -> Result<Result<RelayList, AskError>, Error> {
    let destinations: Vec<_> = word.addresses.iter().map(SocketAddr::ip).collect();
    let owner = QueryOwner { word: word.clone(), exchange: None, outcome: None };
    let endpoint = endpoint(identity, Config::default(), None)?;
    let sockets = sockets::sending(&[], &destinations)?;
    let driver =
        byway_net::spawn("byway ask", endpoint, owner, sockets, Clock::new()).map_err(Error::Thread)?;
    while !driver.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        driver.waker().wake();
    }
    let finished = driver.join()?;
    finished.outcome?;
    Ok(finished.owner.outcome.unwrap_or(Err(AskError::TooLate)))
}

struct QueryOwner {
    word: RegistryWord,
    exchange: Option<ClientExchange>,
    outcome: Option<Result<RelayList, AskError>>,
}

impl QueryOwner {
    fn step(&mut self, endpoint: &mut Endpoint, now: Instant) -> Result<Option<RelayList>, AskError> {
        let exchange = match &mut self.exchange {
            Some(exchange) => exchange,
            None => {
                let mut exchange = ClientExchange::begin(endpoint, now, &self.word)?;
                let most = MAX_RELAYS as u8; // 100
                exchange.ask(&Request::Ask(RelayQuery { proof: self.word.proof.clone(), most, skip: 0 }));
                exchange.finish();
                self.exchange.insert(exchange)
            }
        };
        while let Some(event) = endpoint.next_event() {
            exchange.on_event(&event)?;
        }
        match exchange.drive(endpoint, now)? {
            None => Ok(None),
            Some(Answer::List(list)) => Ok(Some(list)),
            Some(_) => Err(AskError::Closed("it answers something else".into())),
        }
    }
}

impl Owner for QueryOwner {
    type Machine = Endpoint;

    fn turn(&mut self, endpoint: &mut Endpoint, now: Instant) -> LoopControl {
        self.outcome = self.step(endpoint, now).transpose();
        if self.outcome.is_none() {
            return LoopControl::Continue;
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.end(endpoint, now);
        }
        LoopControl::Stop
    }
}
