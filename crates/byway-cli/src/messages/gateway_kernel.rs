//! What `byway gateway` and `byway gateway check` say of this host: its kernel, its devices, and
//! the programs `nft` and `ip`.

use std::fmt::Display;
use std::path::Path;

pub const NO_PRIVILEGE: &str = "a gateway needs CAP_NET_ADMIN, for its device, routes and firewall table: run it as root, or in a systemd \
     unit with AmbientCapabilities=CAP_NET_ADMIN";
pub const CANNOT_READ_CAPABILITIES: &str = "cannot read the capabilities of this process";
/// What a program that failed wrote, if it wrote nothing.
pub const NO_REASON: &str = "it gives no reason";

pub fn not_json(program: &str) -> String {
    format!("the program {program} did not write JSON")
}

pub fn routing_table_in_use(table: u16, destination: Option<&str>) -> String {
    let route = destination.map(|destination| format!(" for a route to {destination}")).unwrap_or_default();
    format!("another program uses the routing table {table}{route}: choose another number with `mark`")
}

/// `reason` is the program's first line.
pub fn program_refuses(program: &str, reason: &str) -> String {
    format!("the program {program} refuses what the gateway needs: {reason}")
}

pub fn program_missing(program: &str, package: &str) -> String {
    format!("the program {program} is missing: install the package {package}")
}

pub fn cannot_run(program: &str) -> String {
    format!("cannot run {program}")
}

pub fn device_of_another_kind(tun: &str) -> String {
    format!("there is a device {tun} of another kind: choose another name with `tun`")
}

pub fn device_in_use(tun: &str) -> String {
    format!(
        "the device {tun} is used by another program, perhaps a gateway: stop that program, or choose another name with `tun`"
    )
}

/// The device would stay when the gateway ends, and packets routed into it would be lost.
pub fn device_persistent(tun: &str) -> String {
    format!(
        "the persistent device {tun} would lose flows after the gateway ends: remove it with `ip tuntap del {tun} mode tun`, \
         or choose another with `tun`"
    )
}

pub fn cannot_write(file: &Path) -> String {
    format!("cannot write {}", file.display())
}

/// `setting` is what `sysctl` calls it.
pub fn not_forwarding(family: &str, setting: impl Display) -> String {
    format!(
        "this host does not forward {family}: run `sysctl -w {setting}=1`, and keep that in /etc/sysctl.d"
    )
}

pub fn family_missing(family: &str) -> String {
    format!("this host has no {family}, so the gateway cannot carry {family} flows")
}

pub fn drops_marked_packets(device: &str) -> String {
    format!(
        "{device} drops captured packets, because src_valid_mark makes its strict rp_filter check their mark: run \
         `sysctl -w net.ipv4.conf.{device}.rp_filter=2`, or switch src_valid_mark off"
    )
}
