//! Announcements as they are written and read.

use crate::ports::Ports;
use alloc::vec::Vec;
use byway_wire::{DecodeError, Prefix, Reader, Writer};
use serde::{Deserialize, Serialize};

/// The version of the announcement that is written.
pub const PART_VERSION: u8 = 1;
/// Bytes of a part at most: it fits into a datagram of a session on any path.
pub const PART_BYTES: usize = 1_000;
/// The most parts of an announcement. With [`PART_BYTES`], it limits the memory that a peer can
/// claim.
pub const MAX_PARTS: usize = 64;
/// Port ranges of an entry at most.
pub const MAX_PORTS: usize = 16;

const HEADER_LEN: usize = 7;

/// Hosts that a gateway serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Served {
    /// The addresses of the hosts.
    pub hosts: Prefix,
    /// The ports that are served; none: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
}

impl Served {
    /// Bytes of an entry at most.
    pub const MAX_BYTES: usize = 18 + MAX_PORTS * 4;

    /// Whether `port` of these hosts is served.
    #[must_use]
    pub fn has_port(&self, port: u16) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|ports| ports.contains(port))
    }

    /// Writes an entry.
    pub fn write(&self, writer: &mut Writer<'_>) {
        self.hosts.write(writer);
        let ports = self.ports.get(..MAX_PORTS).unwrap_or(&self.ports);
        writer.u8(ports.len() as u8);
        for range in ports {
            writer.u16(range.first());
            writer.u16(range.last());
        }
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let hosts = Prefix::read(reader)?;
        let count = usize::from(reader.u8()?);
        if count > MAX_PORTS {
            return Err(DecodeError::Range("port ranges"));
        }
        let mut ports = Vec::with_capacity(count);
        for _ in 0..count {
            ports.push(Ports::new(reader.u16()?, reader.u16()?).ok_or(DecodeError::Range("ports"))?);
        }
        Ok(Self { hosts, ports })
    }
}

/// A part of an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncementPart {
    /// Grows with every change, also over restarts: the seconds of Unix time when it was made do.
    pub serial: u32,
    /// The number of this part, from 0.
    pub part: u8,
    /// Number of parts in the announcement.
    pub parts: u8,
    /// The hosts and ports in this part.
    pub entries: Vec<Served>,
}

impl AnnouncementPart {
    /// Reads a part.
    ///
    /// # Errors
    /// What is wrong with it. Other versions are refused: what they mean is not known.
    pub fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            PART_VERSION => {}
            _ => return Err(DecodeError::Range("version of an announcement")),
        }
        let (serial, part, parts) = (reader.u32()?, reader.u8()?, reader.u8()?);
        if part >= parts || usize::from(parts) > MAX_PARTS || bytes.len() > PART_BYTES {
            return Err(DecodeError::Range("parts of an announcement"));
        }
        let mut entries = Vec::new();
        while !reader.is_empty() {
            entries.push(Served::read(&mut reader)?);
        }
        Ok(Self { serial, part, parts, entries })
    }
}

/// Returns the datagrams of an announcement of `entries`. There is at least one, which can also
/// announce no hosts. `None`: there are too many entries.
#[must_use]
pub fn announce(serial: u32, entries: &[Served]) -> Option<Vec<Vec<u8>>> {
    let mut parts: Vec<Vec<u8>> = alloc::vec![header(serial, 0)];
    for entry in entries {
        let mut buffer = [0; Served::MAX_BYTES];
        let mut writer = Writer::new(&mut buffer);
        entry.write(&mut writer);
        if parts.last().is_none_or(|part| part.len() + writer.len() > PART_BYTES) {
            parts.push(header(serial, parts.len() as u8));
        }
        if let Some(part) = parts.last_mut() {
            part.extend_from_slice(writer.written());
        }
        if parts.len() > MAX_PARTS {
            return None;
        }
    }
    let count = parts.len() as u8;
    for part in &mut parts {
        if let Some(byte) = part.get_mut(HEADER_LEN - 1) {
            *byte = count;
        }
    }
    Some(parts)
}

fn header(serial: u32, part: u8) -> Vec<u8> {
    let mut header = Vec::with_capacity(PART_BYTES);
    header.push(PART_VERSION);
    header.extend_from_slice(&serial.to_be_bytes());
    header.extend_from_slice(&[part, 0]);
    header
}
