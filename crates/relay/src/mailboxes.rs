//! Mailboxes: where two hosts leave letters for each other, until they know each other. Only
//! holders of a genuine word open one, so strangers cannot fill the table.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use byway_wire::relay::{MailboxRequest, MailboxState, PAGE_COUNT};
use byway_wire::{Duration, Instant};

/// Time from the opening of a mailbox to its end.
const MAILBOX_LIFETIME: Duration = Duration::from_secs(600);
/// Time from the guest's arrival to the end of a mailbox. Both hosts are done by then, so used
/// codes leave room for new ones.
const USED_LIFETIME: Duration = Duration::from_secs(60);
/// The most mailboxes that one grant has opened.
const MAX_PER_GRANT: usize = 8;
/// The most mailboxes. With four letters of 1,100 bytes each, they take 1.1 MB.
const MAX_MAILBOXES: usize = 256;
/// The highest number. More than there are mailboxes, so that an old code finds no new mailbox
/// for a while.
const MAX_NUMBER: u16 = 999;

/// A host at a mailbox, and its letters.
#[derive(Debug)]
struct Seat {
    name: [u8; 8],
    letters: [Vec<u8>; PAGE_COUNT],
}

#[derive(Debug)]
struct Mailbox {
    /// The grant under which the mailbox was opened.
    grant: u32,
    ends: Instant,
    /// The host that opened the mailbox. `guest`: the first other host that came.
    opener: Seat,
    guest: Option<Seat>,
}

/// The mailboxes by number. Numbers start at 1, because people type them.
#[derive(Debug, Default)]
pub(crate) struct Mailboxes {
    by_number: BTreeMap<u16, Mailbox>,
    /// The number that was given last. 0: none was.
    last: u16,
}

impl Seat {
    const fn new(name: [u8; 8]) -> Self {
        Self { name, letters: [const { Vec::new() }; PAGE_COUNT] }
    }

    /// Stores a letter, unless its page already has one.
    fn leave(&mut self, request: &MailboxRequest<'_>) {
        if let Some(letter) = self.letters.get_mut(usize::from(request.page))
            && letter.is_empty()
        {
            letter.extend_from_slice(request.letter);
        }
    }
}

impl Mailboxes {
    /// Runs an authentic request. Returns the mailbox's number, and the other host's letter on the
    /// page if this host has a seat.
    pub(crate) fn visit(&mut self, request: &MailboxRequest<'_>, now: Instant) -> (u16, MailboxState, &[u8]) {
        self.by_number.retain(|_, mailbox| mailbox.ends > now);
        let number = match request.number {
            Some(number) => number,
            None => match self.open(request, now) {
                Some(number) => number,
                None => return (0, MailboxState::Full, &[]),
            },
        };
        let Some(Mailbox { opener, guest, ends, .. }) = self.by_number.get_mut(&number) else {
            return (number, MailboxState::Missing, &[]);
        };
        let is_opener = opener.name == request.seat;
        let own = if is_opener {
            &mut *opener
        } else {
            guest.get_or_insert_with(|| {
                *ends = (*ends).min(now + USED_LIFETIME);
                Seat::new(request.seat)
            })
        };
        if own.name != request.seat {
            return (number, MailboxState::Taken, &[]);
        }
        own.leave(request);
        let other = if is_opener { guest.as_ref() } else { Some(&*opener) };
        let letter = other.and_then(|other| other.letters.get(usize::from(request.page)));
        (number, MailboxState::Seated, letter.map(Vec::as_slice).unwrap_or_default())
    }

    /// The mailbox that the host opened before, or a new one with the next free number.
    fn open(&mut self, request: &MailboxRequest<'_>, now: Instant) -> Option<u16> {
        let of_host = |mailbox: &Mailbox| mailbox.opener.name == request.seat;
        let (grant, _) = request.word?;
        if let Some((number, _)) = self.by_number.iter().find(|(_, mailbox)| of_host(mailbox)) {
            return Some(*number);
        }
        let of_grant = self.by_number.values().filter(|mailbox| mailbox.grant == grant.id).count();
        if of_grant >= MAX_PER_GRANT || self.by_number.len() >= MAX_MAILBOXES {
            return None;
        }
        let mut numbers = (self.last + 1..=MAX_NUMBER).chain(1..=self.last);
        let number = numbers.find(|number| !self.by_number.contains_key(number))?;
        self.last = number;
        let opener = Seat::new(request.seat);
        let mailbox = Mailbox { grant: grant.id, ends: now + MAILBOX_LIFETIME, opener, guest: None };
        self.by_number.insert(number, mailbox);
        Some(number)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }
}
