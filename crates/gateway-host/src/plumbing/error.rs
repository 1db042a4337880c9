//! Why this host's kernel, its devices, or the programs `nft` and `ip` do not serve a gateway.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The result of a function that asks the kernel.
pub(super) type Result<T> = std::result::Result<T, PlumbingError>;

/// Why this host cannot run a gateway, and what to do.
#[derive(Debug, Error)]
pub enum PlumbingError {
    /// The process lacks `CAP_NET_ADMIN`.
    #[error(
        "a gateway needs CAP_NET_ADMIN, for its device, routes and firewall table: run it as root, or in a systemd \
         unit with AmbientCapabilities=CAP_NET_ADMIN"
    )]
    NoPrivilege,
    /// The kernel does not say what the process may do.
    #[error("cannot read the capabilities of this process")]
    Capabilities(#[source] io::Error),
    /// A program wrote something else than JSON.
    #[error("the program {program} did not write JSON")]
    NotJson {
        /// The program's name.
        program: &'static str,
        /// The mistake in the program's output.
        source: serde_json::Error,
    },
    /// The gateway's routing table has routes of another program.
    #[error("another program uses the routing table {table}{route}: choose another number with `mark`")]
    TableInUse {
        /// The table's number.
        table: u16,
        /// The route, as words that follow the number. Empty: it has no destination.
        route: String,
    },
    /// A program failed.
    #[error("the program {program} refuses what the gateway needs: {reason}")]
    Refused {
        /// The program's name.
        program: &'static str,
        /// The first line of the program's output.
        reason: String,
    },
    /// A program is not installed.
    #[error("the program {program} is missing: install the package {package}")]
    Missing {
        /// The program's name.
        program: &'static str,
        /// The package that contains the program.
        package: &'static str,
    },
    /// A program cannot be run.
    #[error("cannot run {program}")]
    NotRun {
        /// The program's name.
        program: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The device's name belongs to a device that is no TUN device.
    #[error("there is a device {0} of another kind: choose another name with `tun`")]
    OtherDevice(String),
    /// Another process holds the device.
    #[error(
        "the device {0} is used by another program, perhaps a gateway: stop that program, or choose another name with `tun`"
    )]
    DeviceInUse(String),
    /// The device would remain after the gateway, and packets routed into it would be lost.
    #[error(
        "the persistent device {0} would lose flows after the gateway ends: remove it with `ip tuntap del {0} mode tun`, \
         or choose another with `tun`"
    )]
    PersistentDevice(String),
    /// A setting of the kernel cannot be written.
    #[error("cannot write {}", .path.display())]
    NotWritten {
        /// The setting's file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
