//! An echo server and its client as tasks: `AsyncRead` and `AsyncWrite` under tokio.
//! `cargo run -p byway --features tokio --example tasks` prints a ticket; with the ticket it asks.

use byway::{Config, Endpoint, Peer, Ticket};
use std::error::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What both ends speak.
const PROTOCOL: &str = "byway-echo/1";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::new().protocol(PROTOCOL)?;
    let Some(ticket) = std::env::args().nth(1) else {
        let listener = Endpoint::listen(config)?;
        println!("{}", listener.ticket());
        loop {
            tokio::spawn(serve(listener.accept_async().await?));
        }
    };
    let peer = byway::connect_async(&ticket.parse::<Ticket>()?, config).await?;
    let (one, two) = tokio::join!(ask(&peer, "good morning"), ask(&peer, "good night"));
    println!("{}\n{}", one?, two?);
    Ok(peer.close_async().await?)
}

/// Answers each stream of a peer with what it brings, until the peer leaves.
pub async fn serve(peer: Peer) {
    while let Ok(stream) = peer.accept_stream_async().await {
        tokio::spawn(async move {
            let (mut receiving, mut sending) = stream.split();
            // A stream that breaks off is its peer's affair.
            let _ = tokio::io::copy(&mut receiving, &mut sending).await;
            let _ = sending.finish_async().await;
        });
    }
}

/// Says something in a stream of its own, and waits for the answer.
pub async fn ask(peer: &Peer, text: &str) -> std::io::Result<String> {
    let (mut receiving, mut sending) = peer.open_stream_async().await?.split();
    sending.write_all(text.as_bytes()).await?;
    sending.shutdown()?;
    let mut answer = String::new();
    receiving.read_to_string(&mut answer).await?;
    Ok(answer)
}
