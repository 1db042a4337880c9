//! Short headers between gateways: whatever packet one side shortens is the same at the other, whatever bytes come make no packet of
//! another flow; and whichever examples and answers are lost, both sides mean the same by a template, or know that they do not.
#![no_main]

use byway_gateway::compact::{Form, Generation, MOST_SHORT, Slots, Teaching, Template, Turn, mark};
use byway_gateway::{Segment, State};
use byway_wire::{Duration, Instant, Writer};
use libfuzzer_sys::fuzz_target;

const BEFORE: &[u8] = b"before";

fn shorten(template: &Template, generation: Generation, packet: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = [0; MOST_SHORT];
    let mut writer = Writer::new(&mut buffer);
    let payload = template.shorten(generation, packet, &mut writer)?;
    assert!(!writer.overflowed() && writer.len() < payload);
    Some([writer.written(), &packet[payload..]].concat())
}

fn expand(template: &Template, short: &[u8]) -> Option<Vec<u8>> {
    let mut out = BEFORE.to_vec();
    let done = template.expand(short, &mut out).is_ok();
    assert!(done || out == BEFORE);
    done.then(|| out.split_off(BEFORE.len()))
}

fn both_ways(template: &Template, packet: &[u8]) {
    let generation = Generation::new(packet.len() as u8);
    if let Some(short) = shorten(template, generation, packet) {
        assert_eq!(Form::of(&short), Form::Short(generation));
        assert_eq!(expand(template, &short).as_deref(), Some(packet));
    }
}

/// A packet like `like`, in some bytes that change in a flow.
fn another(like: &[u8], step: &[u8; 3]) -> Vec<u8> {
    let mut packet = like.to_vec();
    let tcp = if packet[0] == 0x45 { 20 } else { 40 };
    packet[tcp + 4 + usize::from(step[1] % 8)] ^= step[2];
    packet[tcp + 16] ^= step[1];
    packet[tcp + 17] = step[2];
    packet
}

fuzz_target!(|input: &[u8]| {
    let Some((&length, rest)) = input.split_first() else { return };
    let (example, other) = rest.split_at(rest.len().min(length.into()));
    let Some(template) = Template::of(example) else { return };
    both_ways(&template, example);
    both_ways(&template, other);
    if let Some(made) = expand(&template, other) {
        let fixed = if example[0] == 0x45 { 12..24 } else { 8..44 };
        assert_eq!(made[fixed.clone()], example[fixed]);
        if let Ok(segment) = Segment::read(&made, State::Checked) {
            assert_eq!(segment.ip.end, made.len());
        }
        both_ways(&template, &made);
    }
    let mut marked = example.to_vec();
    mark(&mut marked, Generation::new(length));
    assert_eq!(Form::of(&marked), Form::Example(Generation::new(length), example[0]));

    let (mut entry, mut exit, mut now, mut session) =
        (Teaching::default(), Slots::default(), Instant::from_millis(1), 0);
    for step in other.as_chunks::<3>().0 {
        let packet = another(example, step);
        let mut buffer = [0; MOST_SHORT];
        let mut writer = Writer::new(&mut buffer);
        match entry.turn(now, (session, Duration::from_millis(7)), &packet, &mut writer) {
            Turn::Whole => {}
            Turn::Example(generation) => {
                // The example is lost, or the answer to it, or neither.
                if step[0] & 1 == 0 {
                    let template = Template::of(&packet).expect("what can be an example");
                    let proof = template.proof();
                    exit.put(generation, template);
                    if step[0] & 2 == 0 {
                        entry.on_known(generation, proof);
                    }
                }
            }
            Turn::Short(payload) => {
                let short = [writer.written(), &packet[payload..]].concat();
                let Form::Short(generation) = Form::of(&short) else { panic!("these are short headers") };
                match exit.get(generation) {
                    Some(template) => assert_eq!(expand(template, &short).as_deref(), Some(&packet[..])),
                    None => entry.on_unknown(generation),
                }
                let mut recovered = Vec::new();
                assert!(entry.recover(generation, &short, &mut recovered) && recovered == packet);
            }
        }
        match step[0] >> 2 {
            0 => exit = Slots::default(),
            1 => session += 1,
            2 => entry.on_unknown(Generation::new(step[1])),
            millis => now += Duration::from_millis(u64::from(millis) * 4),
        }
    }
});
