//! The process that is a lab: it holds the namespaces, carries the packets, and takes everything
//! with it when it ends.

pub use crate::keeper_error::KeeperError;

use crate::frame_forwarding::LabWires;
use crate::lab_blueprint::Blueprint;
use crate::lab_directory::{HostRecord, Lab, LabRecord};
use crate::lab_status::{LinkStatus, Status};
use crate::lateness::Lateness;
use crate::simplex_link::SimplexLink;
use crate::wakeup_lead::WakeupLead;
use crate::{devices, namespaces};
use byway_net::Clock;
use byway_sim::Random;
use byway_wire::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitOptions, setpriority_process, setsid, wait};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fs;
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

/// Prepares to start a lab's keeper (the process that carries the lab's packets). The next child
/// process is the first in a new PID namespace. Without root privileges, this process also enters a
/// new user namespace. Call this only once, before a second thread exists.
///
/// # Errors
/// [`KeeperError::Forbidden`].
pub fn prepare() -> Result<(), KeeperError> {
    namespaces::prepare().map_err(KeeperError::Forbidden)
}

/// Runs a lab as its keeper until SIGTERM or SIGINT, or until no process holds the writing end of
/// the pipe `owner`. Calls `ready` when programs can enter. Returns how late frames left their
/// links.
///
/// # Errors
/// See [`KeeperError`].
pub fn keep(
    lab: &Lab,
    plan: &str,
    seed: u64,
    blueprint: &Blueprint,
    owner: Option<BorrowedFd<'_>>,
    ready: impl FnOnce(),
) -> Result<Lateness, KeeperError> {
    // Terminals and their owners come and go; signals for those who sit there are not for us.
    let _ = setsid();
    let _lock = lab.take()?.ok_or(KeeperError::Alive)?;
    // What others call us can be seen only before /proc is our own.
    let this = fs::read_link("/proc/self")?.to_string_lossy().parse().map_err(io::Error::other)?;
    namespaces::own_mounts()?;
    let _ = namespaces::own_proc();
    let names = lab.file("hosts");
    fs::write(&names, blueprint.hosts_file())?;
    rustix::mount::mount_bind(&names, "/etc/hosts").map_err(io::Error::from)?;
    let core = namespaces::new_network()?;
    let networks =
        blueprint.hosts.iter().map(|_| namespaces::new_network()).collect::<io::Result<Vec<_>>>()?;
    let ports = devices::build(blueprint, &core, &networks)?;
    let clock = Clock::new();
    let lines = (0..ports.len()).filter_map(|index| {
        let (wire, end) = (index / 2, index % 2);
        let config = blueprint.wires.get(wire)?.pipes.get(end)?.clone();
        Some(SimplexLink::new(config, Random::component(seed, &blueprint.direction_name(wire, end))))
    });
    let wires = LabWires::new(clock, &ports, lines.collect());
    let mut loop_ = KeeperLoop::new(lab, blueprint, clock, wires)?;
    lab.write(&record(this, plan, seed, blueprint, &networks))?;
    ready();
    if loop_.run(&ports, owner)? == EndReason::Abandoned {
        lab.remove()?;
    }
    Ok(loop_.wires.lateness())
}

fn record(process: u32, plan: &str, seed: u64, blueprint: &Blueprint, networks: &[OwnedFd]) -> LabRecord {
    let hosts = blueprint.hosts.iter().zip(networks).map(|(host, network)| HostRecord {
        name: host.name.clone(),
        v4: host.v4,
        v6: host.v6,
        network: network.as_raw_fd(),
    });
    LabRecord { process, plan: plan.to_owned(), seed, hosts: hosts.collect() }
}

/// Why a lab ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndReason {
    /// A process asked the lab to end. That process also removes the lab's directory.
    Asked,
    /// The owner of the lab has ended.
    Abandoned,
}

/// Everything that the keeper waits for: packets, frames that are due, status requests, and
/// signals.
struct KeeperLoop<'a> {
    blueprint: &'a Blueprint,
    clock: Clock,
    wires: LabWires<'a>,
    lead: WakeupLead,
    listener: UnixListener,
    stop: UnixStream,
    children: UnixStream,
}

impl<'a> KeeperLoop<'a> {
    fn new(lab: &Lab, blueprint: &'a Blueprint, clock: Clock, wires: LabWires<'a>) -> io::Result<Self> {
        let listener = UnixListener::bind(lab.file("socket"))?;
        let (stop, stopping) = UnixStream::pair()?;
        let (children, ended) = UnixStream::pair()?;
        pipe::register(SIGINT, stopping.try_clone()?)?;
        pipe::register(SIGTERM, stopping)?;
        pipe::register(SIGCHLD, ended)?;
        children.set_nonblocking(true)?;
        listener.set_nonblocking(true)?;
        hurry();
        // Waits end when they should, and not up to 50 µs later to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(Self { blueprint, clock, wires, lead: WakeupLead::default(), listener, stop, children })
    }

    fn run(&mut self, ports: &[impl AsFd], owner: Option<BorrowedFd<'_>>) -> io::Result<EndReason> {
        let (stop, children, listener) =
            (self.stop.try_clone()?, self.children.try_clone()?, self.listener.try_clone()?);
        let mut watched = vec![
            PollFd::new(&stop, PollFlags::IN),
            PollFd::new(&children, PollFlags::IN),
            PollFd::new(&listener, PollFlags::IN),
        ];
        let others = watched.len();
        watched.extend(ports.iter().map(|port| PollFd::new(port, PollFlags::IN)));
        // What an owner says is nothing to us: asked for no event, a pipe tells only that all who
        // could write have gone.
        let end = watched.len();
        watched.extend(owner.map(|owner| PollFd::from_borrowed_fd(owner, PollFlags::empty())));
        loop {
            self.sleep(&mut watched)?;
            let readable = |watched: &[PollFd<'_>], index: usize| {
                watched.get(index).is_some_and(|watched| !watched.revents().is_empty())
            };
            if readable(&watched, 0) {
                return Ok(EndReason::Asked);
            }
            if readable(&watched, end) {
                return Ok(EndReason::Abandoned);
            }
            if readable(&watched, 1) {
                reap(&self.children);
            }
            for port in others..end {
                if readable(&watched, port) {
                    self.wires.fetch(port - others)?;
                }
            }
            self.wires.deliver();
            if readable(&watched, 2) {
                self.tell();
            }
        }
    }

    /// Sleeps until there is something to see or something is due, and the last moment awake.
    fn sleep(&mut self, watched: &mut [PollFd<'_>]) -> io::Result<()> {
        let deadline = self.wires.deadline();
        let begun = self.clock.now();
        let sleep = deadline.map(|deadline| self.lead.sleep(begun, deadline));
        match poll(watched, sleep.map(timespec).as_ref()) {
            Ok(0) => {}
            Ok(_) | Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if let (Some(sleep), Some(deadline)) = (sleep, deadline) {
            self.lead.learn(sleep, begun, self.clock.now());
            while self.clock.now() < deadline {
                core::hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Answers a process that asks for the lab's status.
    fn tell(&self) {
        let Ok((mut asker, _)) = self.listener.accept() else { return };
        // Somebody who does not read must not hold up the packets: what does not fit is lost to
        // them.
        let _ = asker.set_nonblocking(true);
        if let Ok(text) = serde_json::to_vec(&self.status(self.clock.now())) {
            let _ = asker.write_all(&text);
        }
    }

    fn status(&self, now: Instant) -> Status {
        let lateness = self.wires.lateness();
        let lines = self.wires.lines().iter().enumerate();
        Status {
            seconds: now.as_secs_f64(),
            accurate: lateness.accurate(),
            lateness,
            links: lines
                .map(|(index, line)| {
                    LinkStatus::of(self.blueprint.direction_name(index / 2, index % 2), line, now)
                })
                .collect(),
        }
    }
}

/// Gives this process real-time priority or, where the system forbids this, the nice value -20.
/// Otherwise other programs could delay the lab's packets. The program `chrt` of util-linux sets
/// the priority, since no crate here wraps the system call.
fn hurry() {
    let this = std::process::id().to_string();
    let mut chrt = Command::new("chrt");
    chrt.args(["--rr", "--reset-on-fork", "--pid", "10", &this])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !chrt.status().is_ok_and(|status| status.success()) {
        let _ = setpriority_process(None, -20);
    }
}

/// Collects ended processes. A process on a host that loses its parent becomes a child of this one.
fn reap(mut children: &UnixStream) {
    let mut noted = [0; 64];
    while children.read(&mut noted).is_ok_and(|count| count == noted.len()) {}
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
