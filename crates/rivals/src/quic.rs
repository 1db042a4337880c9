//! quinn: one stream without an end, default configuration but for windows that hold as much as byway's.

use crate::{DATAGRAM, Error, Meter, Outcome, PIECE, WINDOW};
use bytes::Bytes;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig,
    VarInt,
};
use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(DATAGRAM as u16);
    transport.mtu_discovery_config(Some(search));
    transport.stream_receive_window(VarInt::from_u32(WINDOW as u32));
    transport.receive_window(VarInt::from_u32(WINDOW as u32));
    transport.send_window(WINDOW as u64);
    Arc::new(transport)
}

fn socket() -> Result<UdpSocket, Error> {
    let io = UdpSocket::bind("127.0.0.1:0")?;
    // What the system does not grant, it grants byway as little.
    let _ = socket2::SockRef::from(&io).set_recv_buffer_size(byway_net::BUFFER_BYTES);
    let _ = socket2::SockRef::from(&io).set_send_buffer_size(byway_net::BUFFER_BYTES);
    Ok(io)
}

async fn take(
    io: UdpSocket,
    config: ServerConfig,
    meter: &Meter,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Error> {
    let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), io, Arc::new(TokioRuntime))?;
    let connection = endpoint.accept().await.ok_or("closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    loop {
        tokio::select! {
            chunk = stream.read_chunk(usize::MAX, true) => match chunk? {
                Some(chunk) => meter.received(chunk.bytes.len() as u64),
                None => return Ok(()),
            },
            _ = stop.changed() => return Ok(()),
        }
    }
}

async fn give(
    io: UdpSocket,
    (config, to): (ClientConfig, SocketAddr),
    meter: &Meter,
    mut stop: watch::Receiver<bool>,
) -> Result<String, Error> {
    let endpoint = Endpoint::new(EndpointConfig::default(), None, io, Arc::new(TokioRuntime))?;
    let connection = endpoint.connect_with(config, to, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    let piece = Bytes::from(vec![1; PIECE]);
    meter.connected();
    loop {
        tokio::select! {
            written = stream.write_chunk(piece.clone()) => written?,
            _ = stop.changed() => break,
        }
    }
    let (stats, path) = (connection.stats(), connection.stats().path);
    let per = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
    Ok(format!(
        "{} B datagrams, {:.1} per send call, {:.1} per ACK; window {} KB, RTT {} us, lost {}",
        path.current_mtu,
        per(stats.udp_tx.datagrams, stats.udp_tx.ios),
        per(stats.udp_tx.datagrams, stats.udp_rx.datagrams),
        path.cwnd / 1000,
        path.rtt.as_micros(),
        path.lost_packets,
    ))
}

/// Moves bytes for `duration`.
///
/// # Errors
///
/// What the system refuses, or no connection.
pub fn run(duration: Duration) -> Result<Outcome, Error> {
    let cert = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let der = CertificateDer::from(cert.cert);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(cert.signing_key.serialize_der()));
    let provider = Arc::new(default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![der.clone()], key)?;
    let mut server =
        ServerConfig::with_crypto(Arc::new(quinn::crypto::rustls::QuicServerConfig::try_from(tls)?));
    server.transport_config(transport());
    let mut roots = RootCertStore::empty();
    roots.add(der)?;
    // The provider's first suite, and what the server agrees to, is AES-256-GCM.
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    client.transport_config(transport());

    let (here, there) = (socket()?, socket()?);
    let to = there.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let meter = Meter::default();
    thread::scope(|scope| {
        // A runtime and a thread for each end, as quinn's own bulk bench has it: more threads than ends only cost here.
        let receiver = scope.spawn({
            let (meter, stopped) = (&meter, stopped.clone());
            move || {
                Builder::new_current_thread()
                    .enable_all()
                    .build()?
                    .block_on(take(there, server, meter, stopped))
            }
        });
        let sender = scope.spawn({
            let meter = &meter;
            move || {
                Builder::new_current_thread().enable_all().build()?.block_on(give(
                    here,
                    (client, to),
                    meter,
                    stopped,
                ))
            }
        });
        let outcome = meter.measure(duration);
        let _ = stop.send(true);
        let note = sender.join().map_err(|_| "the sender panicked")??;
        receiver.join().map_err(|_| "the receiver panicked")?.or_else(|error| {
            // The sender may have left first.
            if outcome.is_ok() { Ok(()) } else { Err(error) }
        })?;
        Ok(Outcome { note, ..outcome? })
    })
}
