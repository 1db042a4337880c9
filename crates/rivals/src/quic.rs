//! quinn as a rival: one endless stream. Its configuration is the default, with windows as large as
//! byway's.

use crate::{Error, Finish, MAX_DATAGRAM_LEN, Meter, PIECE_LEN, WINDOW_BYTES};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, ServerConfig, TokioRuntime, TransportConfig,
    VarInt,
};
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::{Builder as Thread, JoinHandle};
use tokio::runtime::Builder;
use tokio::sync::watch;

/// The cryptography that quinn uses, through rustls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// ring's.
    Ring,
    /// aws-lc-rs's.
    #[cfg(feature = "aws-lc")]
    AwsLc,
}

impl Provider {
    /// Returns the provider. Its first suite, on which both ends agree, is AES-256-GCM.
    fn load(self) -> Arc<CryptoProvider> {
        Arc::new(match self {
            Self::Ring => rustls::crypto::ring::default_provider(),
            #[cfg(feature = "aws-lc")]
            Self::AwsLc => rustls::crypto::aws_lc_rs::default_provider(),
        })
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(MAX_DATAGRAM_LEN as u16);
    transport.mtu_discovery_config(Some(search));
    transport.stream_receive_window(VarInt::from_u32(WINDOW_BYTES as u32));
    transport.receive_window(VarInt::from_u32(WINDOW_BYTES as u32));
    transport.send_window(WINDOW_BYTES as u64);
    Arc::new(transport)
}

fn socket() -> Result<UdpSocket, Error> {
    let io = UdpSocket::bind("127.0.0.1:0")?;
    // What the system does not grant, it grants byway as little.
    let _ = socket2::SockRef::from(&io).set_recv_buffer_size(byway_net::BUFFER_BYTES);
    let _ = socket2::SockRef::from(&io).set_send_buffer_size(byway_net::BUFFER_BYTES);
    Ok(io)
}

/// A runtime on one thread, as in quinn's own bulk benchmark. A second thread at an end would only
/// cost time here.
fn begin<F>(work: F) -> Result<JoinHandle<Result<String, Error>>, Error>
where
    F: Future<Output = Result<String, Error>> + Send + 'static,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(Thread::new().name("quinn".to_owned()).spawn(move || runtime.block_on(work))?)
}

fn finish(work: JoinHandle<Result<String, Error>>, stop: watch::Sender<bool>) -> Finish {
    Box::new(move || {
        let _ = stop.send(true);
        work.join().map_err(|_| "quinn panicked")?
    })
}

/// Starts the receiver. Returns its address and certificate as text, and a function that ends it.
///
/// # Errors
///
/// What the system refuses.
pub fn take(provider: Provider, meter: Meter) -> Result<(String, Finish), Error> {
    let cert = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let der = CertificateDer::from(cert.cert);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(cert.signing_key.serialize_der()));
    let io = socket()?;
    let word = format!("{} {}", io.local_addr()?, HEXLOWER.encode(&der));
    let tls = rustls::ServerConfig::builder_with_provider(provider.load())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![der], key)?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport());
    let (stop, mut stopped) = watch::channel(false);
    let work = async move {
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), io, Arc::new(TokioRuntime))?;
        let connection = endpoint.accept().await.ok_or("closed")?.await?;
        meter.connected();
        let mut stream = connection.accept_uni().await?;
        loop {
            tokio::select! {
                chunk = stream.read_chunk(usize::MAX, true) => match chunk {
                    Ok(Some(chunk)) => meter.received(chunk.bytes.len() as u64),
                    _ => return Ok(String::new()), // the sender left first
                },
                _ = stopped.changed() => return Ok(String::new()),
            }
        }
    };
    Ok((word, finish(begin(work)?, stop)))
}

/// Starts the sender. `word` is the receiver's address and certificate, as its `take` returned
/// them.
///
/// # Errors
///
/// What the system refuses, or a word that is none.
pub fn give(provider: Provider, word: &str, meter: Meter) -> Result<Finish, Error> {
    let (address, der) = word.split_once(' ').ok_or("no word of quinn's")?;
    let address: SocketAddr = address.parse()?;
    let mut roots = RootCertStore::empty();
    let der = HEXLOWER.decode(der.as_bytes()).map_err(|error| error.to_string())?;
    roots.add(CertificateDer::from(der))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider.load())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport());
    let io = socket()?;
    let (stop, mut stopped) = watch::channel(false);
    let work = async move {
        let endpoint = Endpoint::new(EndpointConfig::default(), None, io, Arc::new(TokioRuntime))?;
        let connection = endpoint.connect_with(config, address, "localhost")?.await?;
        let mut stream = connection.open_uni().await?;
        let piece = Bytes::from(vec![1; PIECE_LEN]);
        meter.connected();
        loop {
            tokio::select! {
                written = stream.write_chunk(piece.clone()) => written?,
                _ = stopped.changed() => break,
            }
        }
        let (stats, path) = (connection.stats(), connection.stats().path);
        let per = |datagrams: u64, calls: u64| datagrams as f64 / calls.max(1) as f64;
        Ok(format!(
            "datagrams of {} B, {:.1} per send call, {:.1} per ACK; window {} KB, RTT {} us, lost {}",
            path.current_mtu,
            per(stats.udp_tx.datagrams, stats.udp_tx.ios),
            per(stats.udp_tx.datagrams, stats.udp_rx.datagrams),
            path.cwnd / 1000,
            path.rtt.as_micros(),
            path.lost_packets,
        ))
    };
    Ok(finish(begin(work)?, stop))
}
