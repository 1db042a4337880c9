//! Which host name is looked up next, so that no sender's names hold up another's.

use byway_forward::forward_target::Name;
use byway_wire::fair_share::may_take;
use std::collections::BTreeMap;

/// The public key of the sender that asks.
pub type Sender = [u8; 32];

/// The id of a name to be resolved. Later questions have greater ids.
pub type QuestionId = u64;

/// The most simultaneous lookups of all senders. The system's resolver tries a dead name for ten
/// seconds or longer. One sender gets at most half of these places.
const MAX_LOOK_UPS: usize = 64;

/// The names of one sender that wait to be resolved.
#[derive(Debug, Default)]
struct Questions {
    /// Names that wait, the oldest first.
    waiting: BTreeMap<QuestionId, Name>,
    /// Number of running lookups of this sender, including those whose connection has ended.
    running: usize,
    /// The look-ups that all senders had begun when this one last began one; 0: it has begun none.
    turn: u64,
}

/// The names of all senders, and the running lookups. Its length is limited, as each connection
/// waits for one name at most.
#[derive(Debug, Default)]
pub(crate) struct QuestionQueue {
    senders: BTreeMap<Sender, Questions>,
    /// The sender of each name that is being resolved.
    running: BTreeMap<QuestionId, Sender>,
    /// Look-ups that were begun.
    begun: u64,
}

impl QuestionQueue {
    /// Queues a name of `sender` to be resolved.
    pub fn push(&mut self, sender: Sender, question: QuestionId, name: Name) {
        self.senders.entry(sender).or_default().waiting.insert(question, name);
    }

    /// The name to look up now. It is the oldest of the sender with the fewest running look-ups. Of
    /// several such senders it is the one whose last look-up began longest ago. A sender has as
    /// many look-ups at once as are free for the others.
    pub fn next_due(&mut self) -> Option<(QuestionId, Name)> {
        let free = MAX_LOOK_UPS.saturating_sub(self.running.len());
        let waiting = self.senders.iter().filter_map(|(sender, questions)| {
            let oldest = *questions.waiting.first_key_value()?.0;
            Some((questions.running, questions.turn, oldest, *sender))
        });
        let (running, _, question, sender) = waiting.min()?;
        if !may_take(running, free) {
            return None;
        }
        let questions = self.senders.get_mut(&sender)?;
        let name = questions.waiting.remove(&question)?;
        self.begun += 1;
        questions.running += 1;
        questions.turn = self.begun;
        self.running.insert(question, sender);
        Some((question, name))
    }

    /// A look-up could not begin after all.
    pub fn put_back(&mut self, question: QuestionId, name: Name) {
        if let Some(sender) = self.running.get(&question).copied() {
            self.push(sender, question, name);
        }
        self.answered(question);
    }

    /// Notes that a lookup ended, and frees its place.
    pub fn answered(&mut self, question: QuestionId) {
        let Some(sender) = self.running.remove(&question) else { return };
        if let Some(questions) = self.senders.get_mut(&sender) {
            questions.running = questions.running.saturating_sub(1);
        }
        self.tidy(sender);
    }

    /// A question that waits is dropped. A look-up that runs keeps its place until it is over.
    pub fn remove(&mut self, sender: Sender, question: QuestionId) {
        if let Some(questions) = self.senders.get_mut(&sender) {
            questions.waiting.remove(&question);
        }
        self.tidy(sender);
    }

    /// Whether any name is being looked up.
    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Forgets a sender without questions.
    fn tidy(&mut self, sender: Sender) {
        if self.senders.get(&sender).is_some_and(|it| it.running == 0 && it.waiting.is_empty()) {
            self.senders.remove(&sender);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOODER: Sender = [1; 32];
    const HONEST: Sender = [2; 32];

    fn name(number: u64) -> Name {
        format!("n{number}.example").parse().unwrap()
    }

    /// A queue in which a sender asked for `names` names, none of which is ever answered.
    fn flooded(names: u64) -> QuestionQueue {
        let mut queue = QuestionQueue::default();
        (0..names).for_each(|it| queue.push(FLOODER, it, name(it)));
        while queue.next_due().is_some() {}
        queue
    }

    #[test]
    fn a_senders_thousand_dead_names_hold_up_no_other_sender() {
        let mut queue = flooded(1024);
        assert_eq!(queue.running.len(), MAX_LOOK_UPS / 2);
        // Each of 40 images of another sender's page, as far as there are places.
        (2000..2040).for_each(|it| queue.push(HONEST, it, name(it)));
        let first: Vec<_> = std::iter::from_fn(|| queue.next_due()).map(|(question, _)| question).collect();
        assert_eq!(first, (2000..2016).collect::<Vec<_>>());
        // As answers come, names of whoever has fewer places follow.
        for question in 2000..2016 {
            queue.answered(question);
            assert_eq!(queue.next_due().map(|it| it.0), Some(question + 16));
        }
    }

    /// One party may have many keys, and ask under all of them.
    #[test]
    fn dead_names_of_many_senders_hold_up_a_newcomer_until_one_place_is_free() {
        let mut queue = QuestionQueue::default();
        for number in 0..100_u64 {
            (100..200_u8).for_each(|sender| {
                let question = 100 * number + u64::from(sender);
                queue.push([sender; 32], question, name(question));
            });
        }
        let mut running: Vec<_> = std::iter::from_fn(|| queue.next_due()).map(|it| it.0).collect();
        assert_eq!(running.len(), MAX_LOOK_UPS);
        // Those that have had no turn yet asked before.
        for _ in 0..100 - MAX_LOOK_UPS {
            queue.answered(running.remove(0));
            running.extend(queue.next_due().map(|it| it.0));
        }
        queue.push(HONEST, 20_000, name(1));
        queue.answered(running.remove(0));
        assert_eq!(queue.next_due(), Some((20_000, name(1))));
    }

    #[test]
    fn names_that_are_asked_and_given_up_at_once_take_no_more_places() {
        let mut queue = QuestionQueue::default();
        for question in 0..10_000 {
            queue.push(FLOODER, question, name(question));
            let _ = queue.next_due();
            queue.remove(FLOODER, question);
        }
        assert_eq!(queue.running.len(), MAX_LOOK_UPS / 2);
        assert!(queue.senders[&FLOODER].waiting.is_empty());
        queue.push(HONEST, 20_000, name(1));
        assert_eq!(queue.next_due(), Some((20_000, name(1))));
    }

    #[test]
    fn a_sender_with_a_new_session_has_the_same_share() {
        let mut queue = flooded(1024);
        (0..1024).for_each(|it| queue.remove(FLOODER, it));
        queue.push(FLOODER, 5000, name(0));
        assert_eq!(queue.next_due(), None, "what it asked before still runs");
    }

    #[test]
    fn what_nobody_waits_for_is_not_looked_up() {
        let mut queue = flooded(40);
        (0..40).for_each(|it| queue.remove(FLOODER, it));
        (0..32).for_each(|it| queue.answered(it));
        assert_eq!(queue.next_due(), None);
        assert!(queue.senders.is_empty() && !queue.is_running());
    }

    #[test]
    fn a_look_up_that_could_not_begin_is_the_next_again() {
        let mut queue = QuestionQueue::default();
        queue.push(HONEST, 1, name(1));
        queue.push(HONEST, 2, name(2));
        let (question, asked) = queue.next_due().unwrap();
        queue.put_back(question, asked);
        assert_eq!(queue.next_due(), Some((1, name(1))));
    }
}
