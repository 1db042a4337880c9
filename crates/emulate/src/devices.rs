//! Builds devices, addresses, neighbours and routes in each network namespace by the program `ip`.

use crate::keeper_error::KeeperError;
use crate::lab_blueprint::{Blueprint, Host, mac};
use crate::namespaces;
use crate::netlink::Ethtool;
use crate::packet_socket::Port;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Kernel settings of every host: the file under `/proc/sys/net`, the value, and whether the lab
/// cannot do without.
const HOST_SETTINGS: [(&str, &str, bool); 12] = [
    // Every host forwards: the ways lead through them.
    ("ipv4/ip_forward", "1", true),
    ("ipv6/conf/all/forwarding", "1", false),
    // There and back may go different ways.
    ("ipv4/conf/all/rp_filter", "0", false),
    ("ipv4/conf/default/rp_filter", "0", false),
    // Nobody teaches anybody other routes than the plan's.
    ("ipv4/conf/all/send_redirects", "0", false),
    ("ipv4/conf/default/send_redirects", "0", false),
    ("ipv4/conf/all/accept_redirects", "0", false),
    ("ipv6/conf/default/accept_redirects", "0", false),
    // Nothing is sent that nobody asked for: no search for routers, no probing of one's own
    // addresses.
    ("ipv6/conf/default/accept_ra", "0", false),
    ("ipv6/conf/default/accept_dad", "0", false),
    ("ipv6/conf/default/addr_gen_mode", "1", false),
    // One connection learns nothing from another, so that runs can be compared.
    ("ipv4/tcp_no_metrics_save", "1", false),
];

/// The longest wait until the kernel reports a new device as running. Devices usually need up to a
/// second.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds the virtual Ethernet devices, addresses and routes of a lab, and leaves the calling
/// thread in `core`. Returns a packet socket for each wire end: wire 0 end 0, wire 0 end 1, wire 1
/// end 0, ...
pub(crate) fn build(
    blueprint: &Blueprint,
    // The network namespace with the inner device of each wire end.
    core: &OwnedFd,
    // The network namespaces of the hosts, with the outer devices.
    hosts: &[OwnedFd],
) -> Result<Vec<Port>, KeeperError> {
    for host in hosts {
        namespaces::go_into(host)?;
        for (file, value, needed) in HOST_SETTINGS {
            let path = format!("/proc/sys/net/{file}");
            match fs::write(&path, value) {
                Err(source) if needed => return Err(KeeperError::Setting { path, source }),
                _ => {}
            }
        }
    }
    namespaces::go_into(core)?;
    for scope in ["all", "default"] {
        // Nobody lives here, and nobody is to answer.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"), "1");
    }
    ip(&wires(blueprint, hosts)?)?;
    for (host, space) in blueprint.hosts.iter().zip(hosts) {
        namespaces::go_into(space)?;
        let ethtool = Ethtool::open().map_err(KeeperError::Offload)?;
        for device in &host.devices {
            ethtool.plain(&device.name).map_err(KeeperError::Offload)?;
        }
        ip(&addresses(blueprint, host))?;
    }
    namespaces::go_into(core)?;
    let ethtool = Ethtool::open().map_err(KeeperError::Offload)?;
    let mut ports = Vec::new();
    for wire in 0..blueprint.wires.len() {
        for end in 0..2 {
            let device = inner(wire, end);
            ethtool.plain(&device).map_err(KeeperError::Offload)?;
            ports.push(Port::open(&device)?);
        }
    }
    for (host, space) in blueprint.hosts.iter().zip(hosts) {
        namespaces::go_into(space)?;
        wait_until_running(host)?;
    }
    namespaces::go_into(core)?;
    Ok(ports)
}

/// The name of the device at the keeper's side of a wire end.
fn inner(wire: usize, end: usize) -> String {
    format!("w{wire}e{end}")
}

/// Returns the number of a host: its index in the list, by which wires and routes refer to it.
fn number(blueprint: &Blueprint, host: &Host) -> usize {
    blueprint.hosts.iter().position(|other| other.name == host.name).unwrap_or_default()
}

/// Returns the commands for `ip` that make every virtual Ethernet. The keeper has one end of each,
/// and a host has the other.
fn wires(blueprint: &Blueprint, hosts: &[OwnedFd]) -> io::Result<String> {
    // What `ip` calls us, wherever its /proc is from.
    let this = fs::read_link("/proc/self")?;
    let mut script = String::new();
    for host in &blueprint.hosts {
        let here = number(blueprint, host);
        let Some(space) = hosts.get(here) else { continue };
        for device in &host.devices {
            let inner = inner(device.wire.0, device.wire.1);
            let _ = writeln!(
                script,
                "link add {inner} mtu 1500 type veth peer name {} mtu 1500 address {} netns /proc/{}/fd/{}\nlink set dev {inner} up",
                device.name,
                mac(here, device.neighbour),
                this.display(),
                space.as_raw_fd(),
            );
        }
    }
    Ok(script)
}

/// Addresses, neighbours and routes of a host.
fn addresses(blueprint: &Blueprint, host: &Host) -> String {
    let here = number(blueprint, host);
    let mut script = "link set dev lo up\n".to_owned();
    // A machine without IPv6 does without.
    let v6 = fs::exists("/proc/sys/net/ipv6/conf").unwrap_or(false);
    for device in &host.devices {
        // With `dev`, or a host called b or up is a word of `ip`.
        let _ = writeln!(script, "link set dev {} up", device.name);
    }
    // A host has its addresses once, at its first device: it answers to them at all.
    if let Some(first) = host.devices.first() {
        let _ = writeln!(script, "address add {}/32 dev {}", host.v4, first.name);
        if v6 {
            let _ = writeln!(script, "address add {}/128 dev {} nodad", host.v6, first.name);
        }
    }
    for device in &host.devices {
        let Some(neighbour) = blueprint.hosts.get(device.neighbour) else { continue };
        let (name, mac) = (&device.name, mac(device.neighbour, here));
        let _ = writeln!(script, "neighbour replace {} lladdr {mac} dev {name} nud permanent", neighbour.v4);
        if v6 {
            let _ =
                writeln!(script, "neighbour replace {} lladdr {mac} dev {name} nud permanent", neighbour.v6);
        }
    }
    for (to, via) in &host.routes {
        let device = host.devices.iter().find(|device| device.neighbour == *via);
        let (Some(to), Some(via), Some(device)) =
            (blueprint.hosts.get(*to), blueprint.hosts.get(*via), device)
        else {
            continue;
        };
        let name = &device.name;
        let _ = writeln!(script, "route add {}/32 via {} dev {name} onlink src {}", to.v4, via.v4, host.v4);
        if v6 {
            let _ =
                writeln!(script, "route add {}/128 via {} dev {name} onlink src {}", to.v6, via.v6, host.v6);
        }
    }
    script
}

/// Runs a batch of `ip` commands in this thread's network namespace.
fn ip(script: &str) -> Result<(), KeeperError> {
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(KeeperError::NoIp)?;
    if let Some(mut input) = child.stdin.take() {
        // If it ends early, what it says counts, and not that it no longer listens.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.rsplit_once("failed -:").and_then(|(_, number)| number.trim().parse::<usize>().ok());
    let command = line.and_then(|line| script.lines().nth(line.saturating_sub(1))).unwrap_or("-batch");
    let said = said.lines().next().unwrap_or_default().trim().to_owned();
    Err(KeeperError::Ip { command: command.to_owned(), said })
}

/// Waits until all devices of a host are running. Programs that list the running devices, as byway
/// does, must find them.
fn wait_until_running(host: &Host) -> Result<(), KeeperError> {
    let begun = Instant::now();
    loop {
        let running = |name: &str| -> io::Result<bool> {
            Ok(getifaddrs()?.any(|entry| {
                entry.interface_name == name && entry.flags.contains(InterfaceFlags::IFF_RUNNING)
            }))
        };
        let mut missing = None;
        for device in &host.devices {
            if !running(&device.name)? {
                missing = Some(device);
            }
        }
        match missing {
            None => return Ok(()),
            Some(device) if begun.elapsed() > DEVICE_TIMEOUT => {
                return Err(KeeperError::Down { host: host.name.clone(), device: device.name.clone() });
            }
            // The kernel tells nobody earlier.
            Some(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
