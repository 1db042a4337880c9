//! TCP connections through `byway forward`, where the test itself is both the client and the
//! server. The cases are half-closed connections, forbidden ports, connections that nobody reads,
//! and ten thousand idle connections.

use super::World;
use crate::common::machine::{Measured, PATIENCE, wait_for};
use crate::common::peak::memory;
use crate::crowd::play;
use libtest_mimic::Failed;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where the targets listen, on the receiver's host.
const TARGET: &str = "127.0.0.1:5201";
/// Connections that nobody reads, and others beside them.
const UNREAD: usize = 40;
const OTHERS: usize = 3;
/// What the others keep of their speed.
const KEPT: f64 = 0.6;
/// How long others run until they are looked at, and how long they are looked at.
const BEGINS: Duration = Duration::from_secs(3);
const LASTS: Duration = Duration::from_secs(10);
/// Idle connections, and the memory that both ends may have together for them.
const CROWD: usize = 10_000;
const MEMORY: u64 = 300 << 20;
/// Descriptors that the receiver needs: three fourths of them are for connections, and two senders
/// together have two thirds of these.
const DESCRIPTORS: u64 = 2 * CROWD as u64;

/// Programs on the sender's host, and the targets that they reach.
struct Pairs<'a> {
    world: &'a World,
    listens: SocketAddr,
    listener: TcpListener,
}

/// A program's end of a connection, and the target's.
type Pair = (TcpStream, TcpStream);

impl<'a> Pairs<'a> {
    fn new(world: &'a World, listens: &str) -> Self {
        let listener = world.hosts.spaces().at("rcv", || TcpListener::bind(TARGET).unwrap());
        Self { world, listens: listens.parse().unwrap(), listener }
    }

    fn connect(&self, listens: SocketAddr) -> TcpStream {
        let program = self.world.hosts.spaces().at("snd", || TcpStream::connect(listens).unwrap());
        program.set_read_timeout(Some(PATIENCE)).unwrap();
        program
    }

    fn begin(&self) -> Pair {
        let program = self.connect(self.listens);
        let target = self.listener.accept().unwrap().0;
        target.set_read_timeout(Some(PATIENCE)).unwrap();
        (program, target)
    }

    /// Megabits per second that new connections have together in one direction.
    fn rate(&self, forth: bool) -> f64 {
        let pairs: Vec<Pair> = (0..OTHERS).map(|_| self.begin()).collect();
        let (read, over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for (program, target) in &pairs {
                let (mut from, mut to) = if forth { (program, target) } else { (target, program) };
                scope.spawn(move || while from.write_all(&[7; 16 << 10]).is_ok() {});
                let (read, over) = (&read, &over);
                scope.spawn(move || {
                    let mut buffer = [0; 64 << 10];
                    while !over.load(Ordering::Acquire) {
                        read.fetch_add(to.read(&mut buffer).unwrap() as u64, Ordering::AcqRel);
                    }
                    to.shutdown(Shutdown::Both).unwrap();
                    from.shutdown(Shutdown::Both).unwrap();
                });
            }
            sleep(BEGINS);
            let (before, begun) = (read.load(Ordering::Acquire), Instant::now());
            sleep(LASTS);
            let bytes = read.load(Ordering::Acquire) - before;
            let rate = bytes as f64 * 8e-6 / begun.elapsed().as_secs_f64();
            over.store(true, Ordering::Release);
            rate
        })
    }
}

/// Writes to all until none takes any more.
fn fill<'a>(all: impl Iterator<Item = &'a TcpStream> + Clone) {
    all.clone().for_each(|it| it.set_nonblocking(true).unwrap());
    let mut taken = Instant::now();
    while taken.elapsed() < Duration::from_secs(2) {
        for mut stream in all.clone() {
            while stream.write(&[7; 64 << 10]).is_ok() {
                taken = Instant::now();
            }
        }
        sleep(Duration::from_millis(20));
    }
}

/// Both directions of forty are full, and nobody reads them: the others keep their speed, in either
/// direction.
pub fn unread() -> Measured {
    beside_unread(true);
    Ok(Some(()))
}

/// The same where the way back has no limit, and next to no RTT.
pub fn unread_without_a_limit() -> Measured {
    beside_unread(false);
    Ok(Some(()))
}

fn beside_unread(is_limited: bool) {
    let mut world = World::new("q");
    for host in ["snd", "rcv"] {
        // What the kernel takes of what nobody reads is not what is looked at.
        for buffers in ["rmem", "wmem"] {
            let setting = format!("net.ipv4.tcp_{buffers}=4096 65536 131072");
            world.hosts.spaces().says(host, &["sysctl", "-qw", &setting]);
        }
    }
    // The way back is as narrow as the way forth, or has no limit.
    for device in ["d1", "e1", "f1"].into_iter().filter(|_| is_limited) {
        let shape = ["root", "tbf", "rate", "10mbit", "burst", "6kb", "limit", "75kb"];
        world
            .hosts
            .spaces()
            .says("rcv", &[&["tc", "qdisc", "add", "dev", device], shape.as_slice()].concat());
    }
    let ticket = world.receive(&["recv", "/nowhere/in", "--allow-forward", TARGET]);
    let listens = world.forward(&[&format!("0:{TARGET}"), "--to", &ticket, "--priority", "normal"]);
    let pairs = Pairs::new(&world, &listens[0]);
    let alone = [true, false].map(|forth| pairs.rate(forth));
    let unread: Vec<Pair> = (0..UNREAD).map(|_| pairs.begin()).collect();
    fill(unread.iter().flat_map(|(program, target)| [program, target]));
    let beside = [true, false].map(|forth| pairs.rate(forth));
    let kept = [0, 1].map(|way| beside[way] / alone[way]);
    println!(
        "{OTHERS} connections have {:.1} and {:.1} Mbit/s forth and back, beside {UNREAD} that nobody reads {:.1} and {:.1}: {:.2} and {:.2}",
        alone[0], alone[1], beside[0], beside[1], kept[0], kept[1]
    );
    assert!(kept.iter().all(|kept| *kept >= KEPT), "{kept:?}");
}

/// One side ends while the other goes on, over three lines; what is not allowed is told at once.
pub fn halves() -> Result<(), Failed> {
    let mut world = World::new("h");
    let ticket = world.receive(&["recv", "/nowhere/in", "--allow-forward", TARGET]);
    let listens =
        world.forward(&[&format!("0:{TARGET}"), "0:127.0.0.1:22", "0:10.77.3.1:4748", "--to", &ticket]);
    let pairs = Pairs::new(&world, &listens[0]);
    let bytes = |seed: u32, length: usize| -> Vec<u8> {
        (0..length as u32)
            .flat_map(|it| (it ^ seed).wrapping_mul(0x9e37_79b9).to_be_bytes())
            .take(length)
            .collect()
    };
    let (question, answer) = (bytes(1, 900_000), bytes(2, 700_001));
    let (mut program, mut target) = pairs.begin();
    std::thread::scope(|scope| {
        let (question, answer) = (&question, &answer);
        scope.spawn(move || {
            let mut came = Vec::new();
            target.read_to_end(&mut came).unwrap();
            assert!(came == *question, "{} bytes came", came.len());
            // The way back is open, though the other has ended.
            target.write_all(answer).unwrap();
        });
        program.write_all(question).unwrap();
        program.shutdown(Shutdown::Write).unwrap();
        let mut came = Vec::new();
        program.read_to_end(&mut came).unwrap();
        assert!(came == *answer, "{} bytes came", came.len());
    });
    // A port of the receiver's that it does not allow, and a host beside it.
    for forbidden in &listens[1..] {
        let begun = Instant::now();
        let error = pairs.connect(forbidden.parse().unwrap()).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        println!("refused after {:?}", begun.elapsed());
    }
    Ok(())
}

/// A program on a host, killed if the test ends before it.
struct Player(Child);

impl Player {
    fn start(world: &World, host: &str, words: &[String]) -> Self {
        let mut command: Command = world.hosts.spaces().on(host);
        Self(command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// A line of what it says.
    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines().map(Result::unwrap)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two senders open ten thousand connections at once and leave them idle; then each carries
/// something there and back. One sender alone may not have so many.
pub fn crowd() -> Measured {
    let descriptors = getrlimit(Resource::Nofile).maximum;
    if descriptors.is_some_and(|most| most < DESCRIPTORS) {
        println!("the system gives {descriptors:?} descriptors: too few");
        return Ok(None);
    }
    let mut world = World::new("k");
    let ticket = world.receive(&["recv", "/nowhere/in", "--allow-forward", TARGET]);
    let local = format!("0:{TARGET}");
    let listens: Vec<String> = ["one", "two"]
        .iter()
        .flat_map(|sender| world.forward_by(sender, &[&local, "--to", &ticket, "--priority", "normal"]))
        .collect();
    let ends: Vec<u32> = world.running.iter().rev().take(3).map(|it| it.id()).collect();
    let before: u64 = ends.iter().map(|id| memory(*id as i32, "VmRSS").unwrap()).sum();
    let port = TARGET.rsplit(':').next().unwrap().parse().unwrap();
    let mut answer = Player::start(&world, "rcv", &play::answer_words(port, CROWD));
    let mut answered = answer.lines();
    assert_eq!(answered.next().as_deref(), Some("listening"));
    let go = world.path("go");
    let mut crowds: Vec<Player> = listens
        .iter()
        .map(|listen| {
            let words = play::crowd_words(listen, CROWD / 2, go.to_str().unwrap());
            Player::start(&world, "snd", &words)
        })
        .collect();
    let mut came: Vec<_> = crowds.iter_mut().map(Player::lines).collect();
    came.iter_mut().for_each(|lines| println!("{}", lines.next().unwrap()));
    // The receiver holds a descriptor for each connection, a sender for each of its own.
    let opened = wait_for(PATIENCE, || {
        let open = |id: &u32| fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
        ends.iter().zip([CROWD / 2, CROWD / 2, CROWD]).all(|(id, most)| open(id) >= most).then_some(())
    });
    assert!(opened.is_some(), "they are not open");
    sleep(Duration::from_secs(2));
    let sum = |what: &str| ends.iter().map(|id| memory(*id as i32, what).unwrap()).sum::<u64>();
    let (idle, most) = (sum("VmRSS"), sum("VmHWM"));
    println!(
        "{CROWD} idle connections: {} MiB at all ends together, {} MiB at most; {} MiB without any",
        idle >> 20,
        most >> 20,
        before >> 20
    );
    fs::write(&go, "")?;
    came.iter_mut().for_each(|lines| println!("{}", lines.next().unwrap()));
    assert_eq!(answered.next().as_deref(), Some("answered"));
    println!("after each carried 2 KiB there and back: {} MiB at most", sum("VmHWM") >> 20);
    assert!(idle <= MEMORY && most <= MEMORY, "{idle} and {most} bytes");
    Ok(Some(()))
}
