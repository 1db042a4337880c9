//! Which template is used, and when it is told: the entry sends an example, and goes by it once the exit has said that it knows it.
//! Until then, and wherever something is amiss, packets travel whole: they may, as they never are larger than the paths carry. So
//! nothing is ever lost for a template that was lost, late or forgotten, but what was under way when an exit forgets.

use super::{Generation, Template};
use alloc::vec::Vec;
use byway_wire::{Duration, Instant, Writer};

/// No two examples of a label follow each other faster.
const SHORTEST: Duration = Duration::from_millis(100);
/// After this long there is a new example whatever the last was: timestamps are 65 seconds of milliseconds away from it at most.
const LONGEST: Duration = Duration::from_secs(16);
/// Until so many packets went by the last one there is none for another while: a flow that sends little had better not repeat itself.
/// But in the end there is, so that what may be wrong with a template is over then.
const WORTH: u32 = 32;

/// The templates of a label: the one in use and the one before it or to come.
#[derive(Clone, Debug, Default)]
pub struct Slots([Option<(Generation, Template)>; 2]);

impl Slots {
    /// Remembers a template in the place of the one before the one in use.
    pub fn put(&mut self, generation: Generation, template: Template) {
        let [even, odd] = &mut self.0;
        *(if generation.number().is_multiple_of(2) { even } else { odd }) = Some((generation, template));
    }

    /// The template of a generation, if it is known.
    #[must_use]
    pub fn get(&self, generation: Generation) -> Option<&Template> {
        self.0.iter().flatten().find(|(known, _)| *known == generation).map(|(_, template)| template)
    }
}

/// How a packet is to travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// As it is.
    Whole,
    /// As an example, to be [marked](super::mark).
    Example(Generation),
    /// With the short headers that were written, and what follows from here on in the packet.
    Short(usize),
}

/// What an entry knows of the templates of a label.
#[derive(Clone, Debug, Default)]
pub struct Teaching {
    slots: Slots,
    /// What the exit knows.
    known: Option<Generation>,
    /// The last example.
    told: Option<(Generation, Instant)>,
    /// When the next is due, and how long after that the next but one.
    due: Instant,
    pause: Duration,
    /// Packets that went short since the last example.
    used: u32,
    /// For which exit all this is.
    exit: u32,
}

impl Teaching {
    /// How `packet` travels to an exit that is named by a number; short headers are written. `rtt` is that of the way there.
    pub fn turn(
        &mut self,
        now: Instant,
        (exit, rtt): (u32, Duration),
        packet: &[u8],
        writer: &mut Writer<'_>,
    ) -> Turn {
        let least = (rtt * 2).max(SHORTEST);
        if self.exit != exit {
            (self.exit, self.known, self.due, self.pause) = (exit, None, now, least);
        }
        let known = self.known.and_then(|known| Some((known, self.slots.get(known)?)));
        let mut misfit = false;
        let due = if self.used < WORTH { self.due + LONGEST } else { self.due };
        if let Some((generation, template)) = known.filter(|_| now < due) {
            if let Some(payload) = template.shorten(generation, packet, writer) {
                self.used = self.used.saturating_add(1);
                return Turn::Short(payload);
            }
            writer.truncate(0);
            misfit = true;
        }
        if now < self.due && !misfit {
            return Turn::Whole;
        }
        let Some(template) = Template::of(packet) else { return Turn::Whole };
        if now < self.due {
            // Something changed for good, perhaps.
            let (_, last) = self.told.unwrap_or((Generation::new(0), now));
            (self.due, self.pause) = (self.due.min(last + least), self.pause.min(least));
            if now < self.due {
                return Turn::Whole;
            }
        }
        let generation = self.next();
        self.slots.put(generation, template);
        (self.told, self.used) = (Some((generation, now)), 0);
        self.pause = self.pause.max(least);
        self.due = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST.max(least));
        Turn::Example(generation)
    }

    /// The generation after the last, which does not take the place of the one in use.
    fn next(&self) -> Generation {
        let last = self.told.map_or(0, |(told, _)| told.number());
        let step = if self.known.is_some_and(|known| (known.number() ^ last) & 1 == 1) { 2 } else { 1 };
        Generation::new(last + step)
    }

    /// The exit knows this template, [proven](Template::proof) to be the one that was told.
    pub fn on_known(&mut self, generation: Generation, proof: u16) {
        let told = self.told.is_some_and(|(told, _)| told == generation);
        if told && self.slots.get(generation).is_some_and(|template| template.proof() == proof) {
            self.known = Some(generation);
        }
    }

    /// The exit does not know this template.
    pub fn on_unknown(&mut self, generation: Generation) {
        if self.known == Some(generation) {
            (self.known, self.due, self.pause) = (None, Instant::ZERO, SHORTEST);
        }
    }

    /// Puts the packet behind what is in `out` that was sent by one of the last two templates as `short`. Whether it is there.
    pub fn recover(&self, generation: Generation, short: &[u8], out: &mut Vec<u8>) -> bool {
        self.slots.get(generation).is_some_and(|template| template.expand(short, out).is_ok())
    }
}
