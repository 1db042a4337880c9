//! A scene as a plan: what `byway lab run` would run.

use super::cases::{Among, LATE};
use super::grid::{Carrier, Course, Foreground, Law, Line, Paths, Queueing, Scene};
use super::times::Times;
use crate::Setup;
use crate::plan::{Mode, Overrides, Plan, PlanError};
use byway_sim::Random;
use std::fmt::Write as _;

/// What the plan calls the background transfers, the one that differs from them, and who else is there.
pub const BACKGROUND: &str = "background";
/// See [`BACKGROUND`].
pub const LAST: &str = "last";
/// See [`BACKGROUND`].
pub const FOREGROUND: &str = "foreground";
/// Hosts that do as Linux does.
const KERNEL: &str = "{ host = \"linux\" }";
/// The same, but each packet is acknowledged.
const LITERAL: &str = "{ host = \"linux\", delayed_ack = false }";
/// Bytes of a request's answer.
const REQUEST: &str = "20 KB";
/// Of a page: connections at a time, and objects of each, one after the other.
const CONNECTIONS: u32 = 6;
const OBJECTS: u32 = 5;
/// Bytes of a call's packet on the wire: 20 ms of G.711, RTP, UDP and IP (RFC 3551).
pub(super) const CALL_BYTES: u32 = 200;
/// A video has at most so many Mbit/s, and at most so much of the line.
const VIDEO_MBIT: f64 = 8.0;
const VIDEO_PART: f64 = 0.4;
/// Seconds of a chunk.
const CHUNK: f64 = 2.0;

/// Where a line is: its ends, in the direction of the data.
pub(super) const DIRECT: [(&str, &str); 4] =
    [("near", "far"), ("relay", "far"), ("relay2", "far"), ("near", "access")];
/// What is behind the line of mPath's figure 7: both ends, Mbit/s, one-way delay in microseconds, and whether it has the line's
/// queue. As in `experiments/mpath-8`.
const MPATH_7: [(&str, &str, u32, u32, bool); 7] = [
    ("access", "core", 10, 48_000, true),
    ("core", "far", 100, 1_000, false),
    ("access", "relay", 100, 5_000, false),
    ("access", "relay2", 15, 33_000, true),
    ("relay2", "core", 100, 35_000, false),
    ("access", "relay3", 5, 39_000, true),
    ("relay3", "core", 100, 39_000, false),
];
/// Its line: one-way delay in microseconds, packets that may wait. Elsewhere in it so many may wait.
const MPATH_7_LINE: (u32, u32) = (1_000, 50);
const MPATH_7_FREE: u32 = 1_000;

/// The plan of a scene, beside transfers of `law` or, for what is compared with, alone.
#[must_use]
pub fn plan(scene: &Scene, law: Option<&Law>) -> String {
    plan_of(scene, scene.times(), law)
}

fn plan_of(scene: &Scene, times: Times, law: Option<&Law>) -> String {
    let mut text = format!(
        "title = \"{scene}\"\nduration = \"{} ms\"\nsample = \"100 ms\"\nseeds = 1\nmemory = \"4 GB\"\n",
        times.stop
    );
    network(&scene.line, times.stop, &mut text);
    let host = format!("congestion = \"cubic\"\ntcp = {KERNEL}\n");
    let cubic = format!("{host}start = \"{} ms\"\n", times.begin);
    let _ = match scene.foreground {
        Foreground::Requests => write!(
            text,
            "[[requests]]\nname = \"{FOREGROUND}\"\nclient = \"far\"\nserver = \"near\"\nsize = \"{REQUEST}\"\n\
             count = {}\nevery = \"{} ms\"\npoisson = true\n{cubic}",
            times.count, times.every
        ),
        Foreground::Video => {
            let bits = (f64::from(scene.line.mbit) * VIDEO_PART).min(VIDEO_MBIT) * CHUNK * 1e6;
            write!(
                text,
                "[[requests]]\nname = \"{FOREGROUND}\"\nclient = \"far\"\nserver = \"near\"\nsize = \"{} B\"\n\
                 count = {}\nevery = \"{} ms\"\n{cubic}",
                (bits / 8.0) as u64,
                times.count,
                times.every
            )
        }
        Foreground::Page => (0..times.count).try_for_each(|page| {
            write!(
                text,
                "[[requests]]\nname = \"page{page}\"\nclient = \"far\"\nserver = \"near\"\nkind = \"web\"\n\
                 clients = {CONNECTIONS}\nrounds = {OBJECTS}\nthink = \"0 s\"\n{host}start = \"{} ms\"\n",
                times.begin + page * times.every
            )
        }),
        Foreground::Call => write!(
            text,
            "[[cross]]\nname = \"{FOREGROUND}\"\nfrom = \"near\"\nto = \"far\"\nrate = \"{} kbit/s\"\n\
             packet = {CALL_BYTES}\ndelays = true\nstart = \"{} ms\"\nstop = \"{} ms\"\n",
            CALL_BYTES * 8 / times.every,
            times.begin,
            times.end
        ),
        Foreground::Cubic | Foreground::Bbr => write!(
            text,
            "[[transfer]]\nname = \"{FOREGROUND}\"\nfrom = \"near\"\nto = \"far\"\ncarrier = \"tcp\"\n\
             congestion = \"{}\"\ntcp = {KERNEL}\nstart = \"{} ms\"\nstop = \"{} ms\"\n",
            scene.foreground.congestion().unwrap_or_default(),
            times.begin,
            times.end
        ),
        Foreground::Nobody => Ok(()),
    };
    if let Some(law) = law {
        transfers(scene, law, &mut text);
    }
    text
}

/// The plan of what a scene beside `law` is compared with, if it is with anything.
#[must_use]
pub fn compared(scene: &Scene, law: &Law) -> Option<String> {
    if scene.instead_of_one_path() {
        let line = Line { paths: Paths::One, ..scene.line };
        // The times are those of the scene: both are measured over the same seconds.
        return Some(plan_of(&Scene { line, ..*scene }, scene.times(), Some(law)));
    }
    (scene.foreground != Foreground::Nobody).then(|| plan(scene, None))
}

fn transfers(scene: &Scene, law: &Law, text: &mut String) {
    let (carrier, host) = match law.carrier {
        // Datagrams are as large as the line takes them.
        Carrier::Session => ("session", "session = { datagram = 1472 }".to_owned()),
        Carrier::Tcp => ("tcp", format!("tcp = {KERNEL}")),
        Carrier::Literal => ("tcp", format!("tcp = {LITERAL}")),
    };
    let paths = match scene.line.paths {
        Paths::One => "",
        Paths::TwoOverOne | Paths::TwoOverTwo => "paths = [\"direct\", \"relay\"]\n",
        Paths::ThreeOverOne | Paths::ThreeOverThree => "paths = [\"direct\", \"relay\", \"relay2\"]\n",
        Paths::Mpath7 => "paths = [\"direct\", \"relay\", \"relay2\", \"relay3\"]\n",
    };
    // Several do not begin at the same time.
    let apart = if scene.transfers > 1 { "start_jitter = \"1 s\"\n" } else { "" };
    let mut some = |name: &str, from: &str, count: u32, more: &str| {
        let _ = write!(
            text,
            "[[transfer]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"far\"\ncount = {count}\n{more}{apart}\
             carrier = \"{carrier}\"\ncongestion = \"{}\"\n{host}\n",
            law.congestion
        );
    };
    let (from, last) = match scene.among {
        Among::Alike => return some(BACKGROUND, "near", scene.transfers, paths),
        Among::Late => ("near", format!("{paths}start = \"{LATE} ms\"\n")),
        Among::Rtt(_) => ("distant", paths.to_owned()),
        Among::Single => ("near", String::new()),
    };
    some(BACKGROUND, "near", scene.transfers - 1, paths);
    some(LAST, from, 1, &last);
    if let Among::Rtt(times) = scene.among {
        let more = scene.line.rtt_ms * 500 * (times - 1);
        let _ = write!(text, "[[link]]\nbetween = [\"distant\", \"near\"]\ndelay = \"{more} us\"\n");
    }
}

/// The only variant of a plan.
///
/// # Errors
/// What is wrong with it.
pub fn setup(text: &str) -> Result<Setup, PlanError> {
    let none = || PlanError { file: "scoreboard".into(), line: 0, what: "a plan without a variant".into() };
    let plan = Plan::read("scoreboard", text, Mode::All, &Overrides::default())?;
    plan.and_then(|plan| plan.variants.into_iter().next()).ok_or_else(none)
}

/// Links, and what changes about them.
fn network(line: &Line, stop: u32, text: &mut String) {
    let discipline = match line.queueing {
        Queueing::DropTail => String::new(),
        Queueing::Codel => "discipline = { kind = \"codel\" }\n".into(),
        Queueing::FqCodel => "discipline = { kind = \"fq-codel\" }\n".into(),
        Queueing::Red => {
            let (min, max) = (line.queue.div_ceil(6), line.queue.div_ceil(2));
            format!("discipline = {{ kind = \"red\", min = {min}, max = {max} }}\n")
        }
    };
    let spec = format!(
        "rate = \"{} Mbit/s\"\ndelay = \"{} us\"\nqueue = \"{} packets\"\nloss = \"{} %\"\njitter = \"{} ms\"\n{discipline}",
        line.mbit,
        line.rtt_ms * 500,
        line.queue,
        f64::from(line.loss) / 10.0,
        line.jitter_ms,
    );
    let mut link = |from: &str, to: &str, spec: &str| {
        let _ = write!(text, "[[link]]\nbetween = [\"{from}\", \"{to}\"]\n{spec}");
    };
    // A round trip by the relay takes 2 ms more.
    match line.paths {
        Paths::One => link("near", "far", &spec),
        Paths::TwoOverOne => {
            // To the relay everything goes over the same line, and then back from there.
            link("near", "far", &spec);
            link("far", "relay", "delay = \"500 us\"\n");
        }
        Paths::TwoOverTwo => {
            link("near", "far", &spec);
            link("near", "relay", "delay = \"1 ms\"\n");
            link("relay", "far", &spec);
        }
        Paths::ThreeOverOne => {
            link("near", "far", &spec);
            link("far", "relay", "delay = \"500 us\"\n");
            link("far", "relay2", "delay = \"500 us\"\n");
        }
        Paths::ThreeOverThree => {
            link("near", "far", &spec);
            for relay in ["relay", "relay2"] {
                link("near", relay, "delay = \"1 ms\"\n");
                link(relay, "far", &spec);
            }
        }
        Paths::Mpath7 => {
            let spec = |mbit: u32, delay: u32, queue: u32| {
                format!("rate = \"{mbit} Mbit/s\"\ndelay = \"{delay} us\"\nqueue = \"{queue} packets\"\n")
            };
            let (delay, queue) = MPATH_7_LINE;
            link("near", "access", &spec(line.mbit, delay, queue));
            for (from, to, mbit, delay, thin) in MPATH_7 {
                link(from, to, &spec(mbit, delay, if thin { line.queue } else { MPATH_7_FREE }));
            }
        }
    }
    for (at, rate) in rates(line, stop).into_iter().skip(1) {
        let _ = write!(
            text,
            "[[change]]\nat = \"{at} ms\"\nlink = [\"near\", \"far\"]\nrate = \"{rate} bit/s\"\none_way = true\n"
        );
    }
}

/// The rates of a line from some millisecond on, in bits per second, from 0 to `stop`. The same for all seeds.
#[must_use]
pub fn rates(line: &Line, stop: u32) -> Vec<(u32, u64)> {
    let most = f64::from(line.mbit) * 1e6;
    let mut random = Random::component(1, &format!("rates of {line}"));
    let mut part = 1.0;
    let step = match line.course {
        Course::Steady => return vec![(0, most as u64)],
        Course::Wifi => 100,
        Course::Lte => 500,
    };
    (0..stop)
        .step_by(step)
        .map(|at| {
            part = match line.course {
                Course::Steady => 1.0,
                Course::Wifi => 0.5 + 0.5 * random.unit(),
                Course::Lte => (part * (2.0 / 3.0 + random.unit() * 2.0 / 3.0)).clamp(0.2, 1.0),
            };
            (at, if at == 0 { most as u64 } else { (most * part) as u64 })
        })
        .collect()
}
