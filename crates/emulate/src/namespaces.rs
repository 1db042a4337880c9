//! Making namespaces, and being in them (namespaces(7)). They belong to threads, and this crate
//! uses one.

use nix::sched::{CloneFlags, setns, unshare};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;

/// Lets the next child become the first process of a new PID namespace. Where that is forbidden,
/// this process first enters a new user namespace, in which it is root.
///
/// # Errors
/// The system forbids both.
pub(crate) fn prepare() -> io::Result<()> {
    if unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // A group may be mapped without privilege only if groups cannot be dropped. See
    // user_namespaces(7).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    Ok(unshare(CloneFlags::CLONE_NEWPID)?)
}

/// Gives this process a mount namespace of its own. Its mounts are invisible to other processes,
/// and vanish when it ends.
pub(crate) fn own_mounts() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    // As a slave, so that what the system unmounts is not held here.
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

/// Mounts a /proc that shows only the processes of this PID namespace. The system may forbid this,
/// for example in containers that mask parts of /proc. Then /proc still shows the processes outside
/// of the namespace. This does no harm.
pub(crate) fn own_proc() -> Result<(), Errno> {
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
}

/// Shows the devices of this network namespace under /sys. As with /proc, it may be forbidden.
pub(crate) fn own_sys() -> Result<(), Errno> {
    mount("sysfs", "/sys", "sysfs", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)
}

/// Makes a new network namespace, and moves this thread into it.
pub(crate) fn new_network() -> io::Result<OwnedFd> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Moves this thread into a network namespace.
pub(crate) fn go_into(network: &OwnedFd) -> io::Result<()> {
    Ok(setns(network, CloneFlags::CLONE_NEWNET)?)
}

/// Moves the caller into the user, mount and PID namespaces of the process with number `process`.
/// Also enters the network namespace that `process` has open as file descriptor `network`. Skips a
/// user namespace that the caller is in. Only later children enter the PID namespace.
pub(crate) fn join(process: u32, network: i32) -> io::Result<()> {
    let here = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}"));
    let there = |kind: &str| fs::read_link(format!("/proc/{process}/ns/{kind}"));
    let open = |kind: &str| File::open(format!("/proc/{process}/ns/{kind}"));
    let user = if here("user")? == there("user")? { None } else { Some(open("user")?) };
    let (mounts, processes) = (open("mnt")?, open("pid")?);
    let network = File::open(format!("/proc/{process}/fd/{network}"))?;
    if let Some(user) = user {
        setns(user, CloneFlags::CLONE_NEWUSER)?;
    }
    setns(processes, CloneFlags::CLONE_NEWPID)?;
    setns(network, CloneFlags::CLONE_NEWNET)?;
    setns(mounts, CloneFlags::CLONE_NEWNS)?;
    Ok(())
}
