//! What this host says to a gateway. That is privileges, the device's name, forwarding, and filters
//! that would drop its packets.

use crate::exit::{Exit, Failure};
use crate::messages::gateway_kernel;
use anyhow::{Context as _, Result};
use byway_gateway::kernel::{Family, KernelPlan};
use std::fs;
use std::path::Path;

/// The directory of the kernel's network settings.
pub const SETTINGS_DIR: &str = "/proc/sys/net";
/// The directory in which the kernel shows its network devices.
pub const DEVICES_DIR: &str = "/sys/class/net";

/// Strict mode of the kernel setting `rp_filter` (`ip-sysctl`): a packet is accepted only from the
/// device by which the kernel would route an answer to the packet's source.
const RP_FILTER_STRICT: u8 = 1;
/// Loose mode: a packet is accepted if any device has a route to its source.
const RP_FILTER_LOOSE: u8 = 2;

/// An error if the process lacks `CAP_NET_ADMIN`.
///
/// # Errors
/// As said; a failure with what to do.
pub fn privileged() -> Result<()> {
    if byway_net::has_net_admin().context(gateway_kernel::CANNOT_READ_CAPABILITIES)? {
        return Ok(());
    }
    Err(Failure::new(Exit::NotAuthorised, gateway_kernel::NO_PRIVILEGE).into())
}

/// Fails if a network device `tun` exists in `devices` (usually [`DEVICES_DIR`]). A persistent TUN
/// device is refused, too: packets routed there would be lost after the gateway ends.
///
/// # Errors
/// The device exists. The message says what to do.
pub fn device_free(tun: &str, devices: &Path) -> Result<()> {
    let device = devices.join(tun);
    if !device.exists() {
        return Ok(());
    }
    let read = |name: &str| fs::read_to_string(device.join(name)).ok().map(|text| text.trim().to_owned());
    let sentence = if read("tun_flags").is_none() {
        gateway_kernel::device_of_another_kind(tun)
    } else if read("carrier").as_deref() == Some("1") {
        gateway_kernel::device_in_use(tun)
    } else {
        gateway_kernel::device_persistent(tun)
    };
    Err(Failure::new(Exit::Error, sentence).into())
}

/// Lets the TUN device bring packets of hosts that would be answered by another one: all do.
///
/// # Errors
/// The setting cannot be written.
pub fn loosen(tun: &str) -> Result<()> {
    let path = Path::new(SETTINGS_DIR).join("ipv4/conf").join(tun).join("rp_filter");
    fs::write(&path, RP_FILTER_LOOSE.to_string()).with_context(|| gateway_kernel::cannot_write(&path))
}

/// Problems of this host that would keep packets from being captured or forwarded, each with its
/// remedy. `settings` is [`SETTINGS_DIR`].
#[must_use]
pub fn complaints(plan: &KernelPlan, settings: &Path) -> Vec<String> {
    let number = |path: &Path| fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u8>().ok());
    let served = |family| plan.routing.iter().any(|(other, _)| *other == family);
    let mut complaints = Vec::new();
    let forwarding =
        [(Family::V4, "ipv4/ip_forward", "IPv4"), (Family::V6, "ipv6/conf/all/forwarding", "IPv6")];
    for (family, path, name) in forwarding {
        if !served(family) {
            continue;
        }
        match number(&settings.join(path)) {
            Some(0) => {
                let setting = format!("net.{}", path.replace('/', "."));
                complaints.push(gateway_kernel::not_forwarding(name, setting));
            }
            None => complaints.push(gateway_kernel::family_missing(name)),
            Some(_) => {}
        }
    }
    if !served(Family::V4) {
        return complaints;
    }
    let conf = settings.join("ipv4/conf");
    let of = |device: &str, name: &str| number(&conf.join(device).join(name)).unwrap_or(0);
    let devices = fs::read_dir(&conf).into_iter().flatten().flatten();
    let mut devices: Vec<String> = devices.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    devices.sort_unstable();
    for device in
        devices.iter().filter(|device| !["all", "default", "lo", &plan.tun].contains(&device.as_str()))
    {
        // The larger of the two counts for the filter; either suffices for the mark.
        let filter = of("all", "rp_filter").max(of(device, "rp_filter"));
        let by_mark = of("all", "src_valid_mark") | of(device, "src_valid_mark") != 0;
        if filter == RP_FILTER_STRICT && by_mark {
            complaints.push(gateway_kernel::drops_marked_packets(device));
        }
    }
    complaints
}
