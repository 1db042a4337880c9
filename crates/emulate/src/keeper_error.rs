//! Why a lab could not be started.

use std::io;

/// Why a lab could not be started.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// A lab with this name is running.
    #[error("a lab of this name is up")]
    Alive,
    /// No leave to make namespaces.
    #[error(
        "this system does not let us make network namespaces ({0}): run as root, or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone)"
    )]
    Forbidden(io::Error),
    /// The program `ip` cannot be run.
    #[error("the program `ip` cannot be run ({0}): install iproute2")]
    NoIp(io::Error),
    /// The program `ip` reported an error.
    #[error("`ip {command}`: {said}")]
    Ip {
        /// The command that `ip` ran.
        command: String,
        /// The program's text on standard error.
        said: String,
    },
    /// Offloads of a device could not be switched off.
    #[error(
        "the offloads of a virtual Ethernet cannot be turned off ({0}), and with them packets are none that a line has"
    )]
    Offload(io::Error),
    /// A setting of the kernel that nothing works without.
    #[error("{path} cannot be written: {source}")]
    Setting {
        /// The setting that failed.
        path: String,
        /// The error of the write.
        source: io::Error,
    },
    /// A device that does not come up.
    #[error("device {device} of {host} does not come up")]
    Down {
        /// The host's name.
        host: String,
        /// The device's name.
        device: String,
    },
    /// Any other failure of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
}
