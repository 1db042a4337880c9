//! A scene as a plan: what `byway lab run` would run.

use super::cases::LATE_START_MS;
use super::grid::{
    Bottleneck, DelayProfile, Foreground, Law, LawCarrier, Paths, Queueing, RateProfile, Scene,
};
use super::times::SceneTimes;
use super::transfer_mix::TransferMix;
use crate::Setup;
use crate::plan::{Mode, Overrides, Plan, PlanError};
use byway_sim::Random;
use serde_json::{Value, json};

/// The name of the background transfers in the plan.
pub const BACKGROUND_NAME: &str = "background";
/// The name in the plan of the background transfer that differs from the others.
pub const LAST_NAME: &str = "last";
/// The name of the foreground in the plan.
pub const FOREGROUND_NAME: &str = "foreground";
/// Bytes of a request's answer.
const ANSWER_SIZE: &str = "20 KB";
/// Connections of a page at a time.
const PAGE_CONNECTIONS: u32 = 6;
/// Objects of each connection, one after another.
const OBJECTS_PER_CONNECTION: u32 = 5;
/// Bytes of a call's packet on the wire. It holds 20 ms of G.711 and the headers of RTP, UDP and IP
/// (RFC 3551).
pub(super) const CALL_BYTES: u32 = 200;
/// Mbit/s of a video at most.
const VIDEO_MBIT: f64 = 8.0;
/// The part of the line (0 to 1) that a video has at most.
const VIDEO_PART: f64 = 0.4;
/// Seconds of a chunk.
const CHUNK_SECONDS: f64 = 2.0;

/// The ends of each line, in the direction of the data.
pub(super) const DIRECT_LINKS: [(&str, &str); 4] =
    [("near", "far"), ("relay", "far"), ("relay2", "far"), ("near", "access")];
/// The links behind the access line of mPath's figure 7, as in `experiments/mpath-8`. Fields: both
/// ends, rate in Mbit/s, one-way delay in microseconds, and a flag. With the flag, the scene (test
/// case) sets how many packets the queue holds; without it, 1 000 packets.
const MPATH_7: [(&str, &str, u32, u32, bool); 7] = [
    ("access", "core", 10, 48_000, true),
    ("core", "far", 100, 1_000, false),
    ("access", "relay", 100, 5_000, false),
    ("access", "relay2", 15, 33_000, true),
    ("relay2", "core", 100, 35_000, false),
    ("access", "relay3", 5, 39_000, true),
    ("relay3", "core", 100, 39_000, false),
];
/// The line of mPath's figure 7: one-way delay in microseconds, and the packets that its queue
/// holds.
const MPATH_7_LINE: (u32, u32) = (1_000, 50);
const MPATH_7_FREE: u32 = 1_000;
/// Milliseconds from one stall of a line to the next, on average.
const STALL_PERIOD_MS: u32 = 1_000;
/// The shortest and the longest stall in milliseconds.
const STALL_MS: [u32; 2] = [20, 50];

/// Returns the plan of a scene with transfers of `law`. Without a `law`, it has no transfers: other
/// scenes are compared with it.
#[must_use]
pub fn plan(scene: &Scene, law: Option<&Law>) -> Value {
    plan_of(scene, scene.times(), law)
}

/// A plan as a file.
///
/// # Errors
/// If it cannot be written as TOML.
pub fn written(plan: &Value) -> Result<String, toml::ser::Error> {
    toml::to_string(plan)
}

fn plan_of(scene: &Scene, times: SceneTimes, law: Option<&Law>) -> Value {
    let (mut requests, mut cross, mut transfers) = (Vec::new(), Vec::new(), Vec::new());
    match scene.foreground {
        Foreground::Requests => {
            let mut some = asked(FOREGROUND_NAME, times.begin);
            extend(
                &mut some,
                json!({
                    "size": ANSWER_SIZE,
                    "count": times.count,
                    "every": ms(times.every),
                    "poisson": true,
                }),
            );
            requests.push(some);
        }
        Foreground::Video => {
            let bits = (f64::from(scene.line.mbit) * VIDEO_PART).min(VIDEO_MBIT) * CHUNK_SECONDS * 1e6;
            let size = format!("{} B", (bits / 8.0) as u64);
            let mut some = asked(FOREGROUND_NAME, times.begin);
            extend(&mut some, json!({ "size": size, "count": times.count, "every": ms(times.every) }));
            requests.push(some);
        }
        Foreground::Page => requests.extend((0..times.count).map(|page| {
            let mut some = asked(&format!("page{page}"), times.begin + page * times.every);
            extend(
                &mut some,
                json!({
                    "kind": "web",
                    "clients": PAGE_CONNECTIONS,
                    "rounds": OBJECTS_PER_CONNECTION,
                    "think": "0 s",
                }),
            );
            some
        })),
        Foreground::Call => cross.push(json!({
            "name": FOREGROUND_NAME,
            "from": "near",
            "to": "far",
            "rate": format!("{} kbit/s", CALL_BYTES * 8 / times.every),
            "packet": CALL_BYTES,
            "delays": true,
            "start": ms(times.begin),
            "stop": ms(times.end),
        })),
        Foreground::Cubic | Foreground::Bbr => transfers.push(json!({
            "name": FOREGROUND_NAME,
            "from": "near",
            "to": "far",
            "carrier": "tcp",
            "congestion": scene.foreground.congestion().unwrap_or_default(),
            "tcp": { "host": "linux" },
            "start": ms(times.begin),
            "stop": ms(times.end),
        })),
        Foreground::Nobody => {}
    }
    let mut links = links(&scene.line);
    if let Some(law) = law {
        transfers.extend(background(scene, law));
        if let TransferMix::Rtt(times) = scene.among {
            let more = scene.line.rtt_ms * 500 * (times - 1);
            links.push(json!({ "between": ["distant", "near"], "delay": us(more) }));
        }
    }
    json!({
        "title": scene.to_string(),
        "duration": ms(times.stop),
        "sample": "100 ms",
        "seeds": 1,
        "memory": "4 GB",
        "link": links,
        "change": changes(&scene.line, times.stop),
        "requests": requests,
        "cross": cross,
        "transfer": transfers,
    })
}

fn ms(count: u32) -> String {
    format!("{count} ms")
}

fn us(count: u32) -> String {
    format!("{count} us")
}

/// Adds to a table.
fn extend(table: &mut Value, more: Value) {
    if let (Some(table), Value::Object(more)) = (table.as_object_mut(), more) {
        table.extend(more);
    }
}

/// Requests of a host that does as Linux does.
fn asked(name: &str, start: u32) -> Value {
    json!({
        "name": name,
        "client": "far",
        "server": "near",
        "congestion": "cubic",
        "tcp": { "host": "linux" },
        "start": ms(start),
    })
}

/// Returns the plan of the run with which a scene under `law` is compared. `None`: it is compared
/// with none.
#[must_use]
pub fn compared(scene: &Scene, law: &Law) -> Option<Value> {
    if scene.instead_of_one_path() {
        let line = Bottleneck { paths: Paths::One, ..scene.line };
        // The times are those of the scene: both are measured over the same seconds.
        return Some(plan_of(&Scene { line, ..*scene }, scene.times(), Some(law)));
    }
    (scene.foreground != Foreground::Nobody).then(|| plan(scene, None))
}

/// The transfers of a law.
fn background(scene: &Scene, law: &Law) -> Vec<Value> {
    let carrier = match law.carrier {
        // Datagrams are as large as the line takes them.
        LawCarrier::Session => json!({ "carrier": "session", "session": { "datagram": 1472 } }),
        LawCarrier::Tcp => json!({ "carrier": "tcp", "tcp": { "host": "linux" } }),
        LawCarrier::Literal => json!({ "carrier": "tcp", "tcp": { "host": "linux", "delayed_ack": false } }),
    };
    let paths = match scene.line.paths {
        Paths::One => json!({}),
        Paths::TwoOverOne | Paths::TwoOverTwo => json!({ "paths": ["direct", "relay"] }),
        Paths::ThreeOverOne | Paths::ThreeOverThree => json!({ "paths": ["direct", "relay", "relay2"] }),
        Paths::Mpath7 => json!({ "paths": ["direct", "relay", "relay2", "relay3"] }),
    };
    // Several do not begin at the same time.
    let apart = if scene.transfers > 1 { json!({ "start_jitter": "1 s" }) } else { json!({}) };
    let some = |name: &str, from: &str, count: u32, more: [Value; 2]| {
        let congestion = law.congestion.to_string();
        let mut some =
            json!({ "name": name, "from": from, "to": "far", "count": count, "congestion": congestion });
        for part in [carrier.clone(), apart.clone()].into_iter().chain(more) {
            extend(&mut some, part);
        }
        some
    };
    let (from, last) = match scene.among {
        TransferMix::Alike => {
            return vec![some(BACKGROUND_NAME, "near", scene.transfers, [paths, json!({})])];
        }
        TransferMix::Late => ("near", [paths.clone(), json!({ "start": ms(LATE_START_MS) })]),
        TransferMix::Rtt(_) => ("distant", [paths.clone(), json!({})]),
        TransferMix::Single => ("near", [json!({}), json!({})]),
    };
    vec![
        some(BACKGROUND_NAME, "near", scene.transfers - 1, [paths, json!({})]),
        some(LAST_NAME, from, 1, last),
    ]
}

/// The only variant of a plan.
///
/// # Errors
/// What is wrong with it.
pub fn setup(plan: &Value) -> Result<Setup, PlanError> {
    let wrong = |what: String| PlanError { file: "scoreboard".into(), line: 0, what };
    let text = written(plan).map_err(|error| wrong(error.to_string()))?;
    let plan = Plan::read("scoreboard", &text, Mode::All, &Overrides::default())?;
    let variant = plan.and_then(|plan| plan.variants.into_iter().next());
    variant.ok_or_else(|| wrong("a plan without a variant".into()))
}

/// The links of a line.
fn links(line: &Bottleneck) -> Vec<Value> {
    let mut spec = json!({
        "rate": format!("{} Mbit/s", line.mbit),
        "delay": us(line.rtt_ms * 500),
        "queue": format!("{} packets", line.queue),
        "loss": format!("{} %", f64::from(line.loss) / 10.0),
        "jitter": ms(line.jitter_ms),
    });
    if line.delays == DelayProfile::Stalls {
        let [min, max] = STALL_MS.map(ms);
        spec["stalls"] = json!({ "period": ms(STALL_PERIOD_MS), "min": min, "max": max });
    }
    match line.queueing {
        Queueing::DropTail => {}
        Queueing::Codel => spec["discipline"] = json!({ "kind": "codel" }),
        Queueing::FqCodel => spec["discipline"] = json!({ "kind": "fq-codel" }),
        Queueing::Red => {
            let (min, max) = (line.queue.div_ceil(6), line.queue.div_ceil(2));
            spec["discipline"] = json!({ "kind": "red", "min": min, "max": max });
        }
    }
    let link = |from: &str, to: &str, spec: &Value| {
        let mut link = spec.clone();
        link["between"] = json!([from, to]);
        link
    };
    let beside = |from: &str, to: &str, delay: u32| link(from, to, &json!({ "delay": us(delay) }));
    // A round trip by the relay takes 2 ms more.
    match line.paths {
        Paths::One => vec![link("near", "far", &spec)],
        // To the relay everything goes over the same line, and then back from there.
        Paths::TwoOverOne => vec![link("near", "far", &spec), beside("far", "relay", 500)],
        Paths::TwoOverTwo => {
            vec![link("near", "far", &spec), beside("near", "relay", 1_000), link("relay", "far", &spec)]
        }
        Paths::ThreeOverOne => {
            vec![link("near", "far", &spec), beside("far", "relay", 500), beside("far", "relay2", 500)]
        }
        Paths::ThreeOverThree => {
            let by = |relay: &str| [beside("near", relay, 1_000), link(relay, "far", &spec)];
            [link("near", "far", &spec)]
                .into_iter()
                .chain(["relay", "relay2"].into_iter().flat_map(by))
                .collect()
        }
        Paths::Mpath7 => {
            let spec = |mbit: u32, delay: u32, queue: u32| json!({ "rate": format!("{mbit} Mbit/s"), "delay": us(delay), "queue": format!("{queue} packets") });
            let (delay, queue) = MPATH_7_LINE;
            let others = MPATH_7.into_iter().map(|(from, to, mbit, delay, thin)| {
                link(from, to, &spec(mbit, delay, if thin { line.queue } else { MPATH_7_FREE }))
            });
            [link("near", "access", &spec(line.mbit, delay, queue))].into_iter().chain(others).collect()
        }
    }
}

/// Returns the changes of the line. Its rate changes in the direction of the data, its delay in
/// both.
fn changes(line: &Bottleneck, stop: u32) -> Vec<Value> {
    let rate = |(at, rate): (u32, u64)| json!({ "at": ms(at), "link": ["near", "far"], "rate": format!("{rate} bit/s"), "one_way": true });
    let delay =
        |(at, delay): (u32, u32)| json!({ "at": ms(at), "link": ["near", "far"], "delay": us(delay) });
    let rates = rates(line, stop).into_iter().skip(1).map(rate);
    rates.chain(delays(line, stop).into_iter().map(delay)).collect()
}

/// The one-way delays of a line from some millisecond on, in microseconds, from 0 to `stop`. The
/// same for all seeds.
fn delays(line: &Bottleneck, stop: u32) -> Vec<(u32, u32)> {
    let (step, most) = match line.delays {
        DelayProfile::Steady | DelayProfile::Stalls => return Vec::new(),
        DelayProfile::Cell => (100, 10_000),
        DelayProfile::Satellite => (15_000, 20_000),
    };
    let mut random = Random::component(1, &format!("delays of {line}"));
    (0..stop).step_by(step).map(|at| (at, line.rtt_ms * 500 + random.below(most) as u32)).collect()
}

/// The rates of a line from some millisecond on, in bits per second, from 0 to `stop`. The same for
/// all seeds.
#[must_use]
pub fn rates(line: &Bottleneck, stop: u32) -> Vec<(u32, u64)> {
    let most = f64::from(line.mbit) * 1e6;
    let mut random = Random::component(1, &format!("rates of {line}"));
    let mut part = 1.0;
    let step = match line.course {
        RateProfile::Steady => return vec![(0, most as u64)],
        RateProfile::Wifi => 100,
        RateProfile::Lte => 500,
        RateProfile::Cell => 100,
    };
    (0..stop)
        .step_by(step)
        .map(|at| {
            part = match line.course {
                RateProfile::Steady => 1.0,
                RateProfile::Wifi => 0.5 + 0.5 * random.unit(),
                RateProfile::Lte => (part * (2.0 / 3.0 + random.unit() * 2.0 / 3.0)).clamp(0.2, 1.0),
                RateProfile::Cell => (part * (0.8 + random.unit() * 0.4)).clamp(0.3, 1.0),
            };
            (at, if at == 0 { most as u64 } else { (most * part) as u64 })
        })
        .collect()
}
