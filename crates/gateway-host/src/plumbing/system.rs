//! Checks of this host for a gateway. That is privileges, the device's name, forwarding, and
//! filters that would drop its packets.

use super::error::{PlumbingError, Result};
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
    match byway_net::has_net_admin().map_err(PlumbingError::Capabilities)? {
        true => Ok(()),
        false => Err(PlumbingError::NoPrivilege),
    }
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
    Err(if read("tun_flags").is_none() {
        PlumbingError::OtherDevice(tun.to_owned())
    } else if read("carrier").as_deref() == Some("1") {
        PlumbingError::DeviceInUse(tun.to_owned())
    } else {
        PlumbingError::PersistentDevice(tun.to_owned())
    })
}

/// Lets the TUN device bring packets of hosts that would be answered by another one: all do.
///
/// # Errors
/// The setting cannot be written.
pub fn loosen(tun: &str) -> Result<()> {
    let path = Path::new(SETTINGS_DIR).join("ipv4/conf").join(tun).join("rp_filter");
    fs::write(&path, RP_FILTER_LOOSE.to_string()).map_err(|source| PlumbingError::NotWritten { path, source })
}

/// Returns the problems of this host that would keep packets from being captured or forwarded, each
/// with its remedy. `settings` is [`SETTINGS_DIR`].
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
                complaints.push(format!(
                    "this host does not forward {name}: run `sysctl -w {setting}=1`, and keep that in /etc/sysctl.d"
                ));
            }
            None => {
                complaints.push(format!("this host has no {name}, so the gateway cannot carry {name} flows"))
            }
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
            complaints.push(format!(
                "{device} drops captured packets, because src_valid_mark makes its strict rp_filter check their mark: run \
                 `sysctl -w net.ipv4.conf.{device}.rp_filter=2`, or switch src_valid_mark off"
            ));
        }
    }
    complaints
}
