//! The limits and privileges of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    remove_capability_from_bounding_set, set_capabilities,
};
use std::io;

/// Whether this thread may administer networks (`CAP_NET_ADMIN`).
///
/// # Errors
/// As the system says.
pub fn has_net_admin() -> io::Result<bool> {
    Ok(capabilities(None)?.effective.contains(CapabilitySet::NET_ADMIN))
}

/// Raises this process's limit of open descriptors to `wanted`, or to the most that the system
/// allows.
pub fn allow_descriptors(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if current.is_some_and(|current| current < most) {
        // Refused, what there is has to do.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
}

/// Keeps only `CAP_NET_ADMIN` of the capabilities of the calling thread, and of programs that it
/// starts, for good. Call this after opening privileged files, and before other threads start:
/// Linux keeps capabilities per thread.
///
/// # Errors
/// What the system says.
pub fn keep_net_admin() -> io::Result<()> {
    let kept = CapabilitySet::NET_ADMIN;
    let sets = capabilities(None)?;
    // Without `CAP_SETPCAP`, the bounding set (the most that a started program can get) stays.
    if sets.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            // The system refuses to speak of capabilities that it does not have.
            if one != kept && capability_is_in_bounding_set(one).unwrap_or(false) {
                remove_capability_from_bounding_set(one)?;
            }
        }
    }
    let left = CapabilitySets {
        effective: sets.effective & kept,
        permitted: sets.permitted & kept,
        inheritable: sets.inheritable & kept,
    };
    Ok(set_capabilities(None, left)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_administration_of_networks_is_kept() {
        // A thread of its own: the others keep what they have.
        let named = std::thread::Builder::new().name("capabilities".into());
        let after = named.spawn(|| {
            let before = capabilities(None)?;
            keep_net_admin()?;
            io::Result::Ok((
                before,
                capabilities(None)?,
                capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN)?,
            ))
        });
        let (before, after, more) = after.unwrap().join().unwrap().unwrap();
        assert_eq!(after.effective, before.effective & CapabilitySet::NET_ADMIN);
        assert_eq!(after.permitted, before.permitted & CapabilitySet::NET_ADMIN);
        if before.effective.contains(CapabilitySet::SETPCAP) {
            assert!(!more, "programs could get more");
        }
    }
}
