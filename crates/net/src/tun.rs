//! A TUN device: reads the IP packets that the kernel routes into it, and writes IP packets back.
//! With segmentation offload, one read or write moves several packets of a flow (`virtio_net_hdr`;
//! the kernel's `Documentation/networking/tuntap.rst`).

use crate::device::DeviceSource;
use std::io;
use std::sync::Arc;
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN, VirtioNetHdr};

/// Bytes of the largest packet that the kernel hands over at once.
const MAX_READ_BYTES: usize = 65_535;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM` and `VIRTIO_NET_HDR_F_DATA_VALID`: the checksum is to be
/// completed, which is done here, or was checked.
const CHECKSUM_FLAGS: u8 = 1 | 2;
/// `VIRTIO_NET_HDR_GSO_NONE`: one packet, as it is.
const GSO_NONE: u8 = 0;

/// Why a TUN device could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The process lacks the permission to make a device.
    #[error(
        "no TUN device {name}: it takes CAP_NET_ADMIN and /dev/net/tun (run as root, or grant the capability)"
    )]
    Forbidden {
        /// The requested name of the device.
        name: String,
    },
    /// Another process uses a device with this name.
    #[error("a network device {name} is in use already: choose another name")]
    InUse {
        /// The requested name of the device.
        name: String,
    },
    /// Another error of the system.
    #[error("no TUN device {name}: {source}")]
    System {
        /// The requested name of the device.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}

/// A TUN device. It is removed when this value is dropped or the process ends.
pub struct Tun {
    device: Arc<SyncDevice>,
    read: Vec<u8>,
    packets: Vec<Vec<u8>>,
    sizes: Vec<usize>,
    together: GROTable,
    writing: Vec<Vec<u8>>,
    written: usize,
    lost: u64,
}

impl Tun {
    /// Makes a device, up, for packets of `mtu` bytes at most. It has no addresses and no routes.
    ///
    /// # Errors
    ///
    /// See [`TunError`].
    pub fn open(name: &str, mtu: u16) -> Result<Self, TunError> {
        let build = || {
            let device = DeviceBuilder::new()
                .name(name)
                .mtu(mtu)
                .with(|builder| {
                    builder.offload(true);
                })
                .build_sync()?;
            device.set_nonblocking(true)?;
            Ok(device)
        };
        let device = build().map_err(|source: io::Error| {
            let name = name.to_owned();
            match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => TunError::Forbidden { name },
                io::ErrorKind::ResourceBusy => TunError::InUse { name },
                _ => TunError::System { name, source },
            }
        })?;
        let largest = usize::from(mtu).max(2_048);
        Ok(Self {
            device: Arc::new(device),
            read: vec![0; VIRTIO_NET_HDR_LEN + MAX_READ_BYTES],
            packets: vec![vec![0; largest]; IDEAL_BATCH_SIZE],
            sizes: vec![0; IDEAL_BATCH_SIZE],
            together: GROTable::default(),
            writing: vec![Vec::new(); IDEAL_BATCH_SIZE],
            written: 0,
            lost: 0,
        })
    }

    /// The descriptor to watch for packets.
    #[must_use]
    pub fn source(&self) -> DeviceSource {
        DeviceSource::new(self.device.clone())
    }

    /// Hands each packet of one read to `packet`, with a flag: whether the packet's checksum is
    /// known to be right. Returns `false` if there was nothing to read.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn receive(&mut self, mut packet: impl FnMut(&[u8], bool)) -> io::Result<bool> {
        match self.device.recv_multiple(&mut self.read, &mut self.packets, &mut self.sizes, 0) {
            Ok(count) => {
                let header = VirtioNetHdr::decode(&self.read)?;
                // The kernel checks no packets that it merely forwards.
                let vouched = header.gso_type != GSO_NONE || header.flags & CHECKSUM_FLAGS != 0;
                for (buffer, size) in self.packets.iter().zip(&self.sizes).take(count) {
                    packet(buffer.get(..*size).unwrap_or_default(), vouched);
                }
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes a packet, sooner or later: see [`flush`](Self::flush).
    pub fn send(&mut self, packet: &[u8]) {
        if self.written == self.writing.len() {
            self.flush();
        }
        if let Some(buffer) = self.writing.get_mut(self.written) {
            buffer.clear();
            buffer.resize(VIRTIO_NET_HDR_LEN, 0);
            buffer.extend_from_slice(packet);
            self.written += 1;
        }
    }

    /// Writes the packets given to [`send`](Self::send). Packets that the kernel refuses are lost
    /// and counted, as on any link.
    pub fn flush(&mut self) {
        let count = core::mem::take(&mut self.written);
        let Some(batch) = self.writing.get_mut(..count).filter(|batch| !batch.is_empty()) else { return };
        if self.device.send_multiple(&mut self.together, batch, VIRTIO_NET_HDR_LEN).is_err() {
            self.lost += count as u64;
        }
    }

    /// Packets that the kernel did not take.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}
