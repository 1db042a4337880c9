//! TCP connections that carry framed packets, made by hand: from any address of this host, and with
//! what no program of ours would write.

use byway_wire::Writer;
use byway_wire::framing::prefix;
use byway_wire::relay::{GREET_LEN, Greet, Greeted};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

/// How long a connection may take to be answered.
const ANSWER: Duration = Duration::from_secs(60);

/// The nonce of a grant's greetings, which the relay's answer repeats.
pub fn nonce(grant: u32) -> [u8; 8] {
    u64::from(grant).to_be_bytes()
}

/// A greeting of a relay.
pub fn greeting(grant: u32) -> [u8; GREET_LEN] {
    let mut packet = [0; GREET_LEN];
    Greet { nonce: nonce(grant), grant }.write(&mut Writer::new(&mut packet));
    packet
}

/// One end of a connection, and what it has yet to write of a frame.
pub struct Hand {
    pub stream: TcpStream,
    begun: Vec<u8>,
}

impl Hand {
    /// Connects from an address of this host.
    pub fn connect(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<Self> {
        let descriptor = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&descriptor, &SocketAddrV4::new(from, 0))?;
        connect(&descriptor, &to)?;
        Ok(Self::of(descriptor.into()))
    }

    pub fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(ANSWER)).unwrap();
        Self { stream, begun: Vec::new() }
    }

    /// Sends a packet in a frame, whole.
    pub fn put(&mut self, packet: &[u8]) {
        self.stream.write_all(&[&prefix(packet.len()).unwrap()[..], packet].concat()).unwrap();
    }

    /// The packet of the next frame.
    pub fn get(&mut self) -> Vec<u8> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length).unwrap();
        let mut packet = vec![0; usize::from(u16::from_be_bytes(length))];
        self.stream.read_exact(&mut packet).unwrap();
        packet
    }

    /// What a relay answers to a greeting.
    pub fn greet(&mut self, grant: u32) -> Greeted {
        self.put(&greeting(grant));
        Greeted::read(&self.get()).unwrap()
    }

    /// Sends packets that `make` gives until the connection is full. Bytes that it took.
    pub fn fill(&mut self, mut make: impl FnMut() -> Vec<u8>) -> usize {
        self.stream.set_nonblocking(true).unwrap();
        let mut taken = 0;
        loop {
            if self.begun.is_empty() {
                let packet = make();
                self.begun = [&prefix(packet.len()).unwrap()[..], &packet].concat();
            }
            match self.stream.write(&self.begun) {
                Ok(size) => {
                    self.begun.drain(..size);
                    taken += size;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return taken,
                Err(error) => panic!("{error}"),
            }
        }
    }
}
