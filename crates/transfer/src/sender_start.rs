//! The start of a sender: the thread that reads, the name of the transfer, and a check that no
//! other run sends the same files.

use crate::disk::file_reader::{self, TreeReader, UNKNOWN_TOTAL};
use crate::disk::thread_channel::batch_channel;
use crate::error::Error;
use crate::event_loop::news_channel::NewsSender;
use crate::events::TransferEvent;
use crate::hello_preamble::ConnectionPurpose;
use crate::identity::Identity;
use crate::outbound_transfer::{MAX_QUEUED_MESSAGES, Outbound, OutboundPipe, OutboundTree};
use crate::ticket::Ticket;
use byway_files::{Journals, ListedPaths, Source, SourceOptions, Subdirectory, TreeSelection};
use byway_net::Control;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;
use std::thread::{Builder, JoinHandle};

/// Pieces of standard input that wait to be sent.
const MAX_QUEUED_PIECES: usize = 16;

/// The data to send: files and directories, or a stream.
pub enum Payload {
    /// Files and directories are sent.
    Tree {
        /// The paths of the files and directories.
        paths: Vec<PathBuf>,
        /// How the tree is read, and how it is compared with the receiver's.
        options: SourceOptions,
        /// The selection of entries to send: all of them by default.
        selection: Arc<TreeSelection>,
    },
    /// A stream, for example standard input.
    Pipe(Box<dyn Read + Send>),
}

/// The sender's data, the kind of the transfer, its id, and the thread that reads files.
pub(crate) type Started = (Outbound, ConnectionPurpose, [u8; 16], Option<JoinHandle<()>>);

/// Starts the thread that reads.
pub(crate) fn start_outbound(
    (payload, below): (Payload, Option<Subdirectory>),
    identity: &Identity,
    journals: Option<(&Path, &Ticket)>,
    control: &Control,
    news: &NewsSender<TransferEvent>,
) -> Result<Started, Error> {
    let waker = control.waker().clone();
    match payload {
        Payload::Tree { paths, options, selection } => {
            let mut source = Source::open(&paths, options)?.select(Arc::clone(&selection));
            let (transfer, purpose) = match options.looks {
                // It must not take the place of a transfer that runs.
                true => (byway_net::seed()?, ConnectionPurpose::Look),
                false => {
                    let listed = selection.listed.as_ref();
                    let transfer = transfer_of(identity, &paths, options.into_root, (below.as_ref(), listed));
                    (transfer, ConnectionPurpose::Tree)
                }
            };
            source = source.below(below);
            match journals.map(|(directory, ticket)| (directory, alone(directory, transfer, ticket))) {
                Some((_, Ok(journals))) => source = source.with_journals(journals),
                Some((directory, Err(error))) => {
                    let error = unless_another_runs(error)?;
                    let directory = directory.display();
                    let sentence = format!(
                        "cannot keep notes in {directory} ({error}): a transfer that breaks off will begin anew"
                    );
                    let _ = news.try_send(TransferEvent::Warning(sentence));
                }
                None => {}
            }
            let (asks, inbox) = batch_channel(MAX_QUEUED_MESSAGES);
            let (answers, answered) = sync_channel(MAX_QUEUED_MESSAGES + 1);
            let total = Arc::new(AtomicU64::new(UNKNOWN_TOTAL));
            let counted = Arc::clone(&total);
            let reader = TreeReader::new(source, (inbox, answers), news.clone(), waker, counted);
            let thread = Builder::new()
                .name("byway read".into())
                .spawn(move || reader.run())
                .map_err(Error::Thread)?;
            let counted = Arc::clone(&total);
            let journals = journals.map(|(directory, _)| directory.to_owned());
            let aside =
                move || file_reader::aside((&paths, &options, selection), &counted, journals.as_deref());
            Builder::new().name("byway count".into()).spawn(aside).map_err(Error::Thread)?;
            let outbound = Outbound::Tree(Box::new(OutboundTree::new(asks, answered, total)));
            Ok((outbound, purpose, transfer, Some(thread)))
        }
        Payload::Pipe(input) => {
            let (answers, answered) = sync_channel(MAX_QUEUED_PIECES);
            let run = move || file_reader::read_pipe(input, &answers, &waker);
            // The same name again takes the place of a run that was killed: only who knows that no
            // other runs may use it.
            let named = journals.map(|(directory, ticket)| {
                let transfer = stream_of(identity, ticket);
                alone(directory, transfer, ticket).map(|lock| (transfer, lock))
            });
            let (transfer, lock) = match named {
                Some(Ok((transfer, lock))) => (transfer, Some(lock)),
                Some(Err(error)) => {
                    unless_another_runs(error)?;
                    (byway_net::seed()?, None)
                }
                None => (byway_net::seed()?, None),
            };
            Builder::new().name("byway read".into()).spawn(run).map_err(Error::Thread)?;
            Ok((
                Outbound::Pipe(Box::new(OutboundPipe::new(answered, lock))),
                ConnectionPurpose::Pipe,
                transfer,
                None,
            ))
        }
    }
}

/// Opens and locks the journals of a transfer to this receiver, for this run alone.
fn alone(directory: &Path, transfer: [u8; 16], ticket: &Ticket) -> io::Result<Journals> {
    let hash = blake3::hash(&[&transfer[..], &ticket.key.0].concat());
    Journals::open(&directory.join(hash.to_hex().get(..32).unwrap_or_default()))
}

/// Returns an error about journals, which only means that nothing is saved. A lock that another run
/// holds is an error of the transfer.
fn unless_another_runs(error: io::Error) -> Result<io::Error, Error> {
    if error.kind() == io::ErrorKind::WouldBlock { Err(Error::AlreadySending) } else { Ok(error) }
}

/// The name of a stream: its receiver's ticket and its sender's key make it. So a second try is
/// known as one.
fn stream_of(identity: &Identity, ticket: &Ticket) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("byway 2026 transfer of a stream");
    for part in [&identity.public().0[..], &ticket.key.0, ticket.permission.expose()] {
        hasher.update(part);
    }
    let mut name = [0; 16];
    hasher.finalize_xof().fill(&mut name);
    name
}

/// The name of a tree: its sender's key, its paths and where it lands make it. So a second try is
/// known as one.
fn transfer_of(
    identity: &Identity,
    paths: &[PathBuf],
    into_root: bool,
    (below, listed): (Option<&Subdirectory>, Option<&ListedPaths>),
) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("byway 2026 transfer of a tree");
    hasher.update(&identity.public().0);
    for path in paths {
        let full = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        // A slash behind a name says nothing; what says something is whether the name is sent.
        let mut bytes = full.as_os_str().as_bytes();
        while let Some(shorter) = bytes.strip_suffix(b"/") {
            bytes = shorter;
        }
        hasher.update(&(bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
        hasher.update(&[u8::from(into_root || byway_files::names_contents(path))]);
    }
    if let Some(below) = below {
        // No path is as long as this says.
        hasher.update(&u64::MAX.to_be_bytes());
        hasher.update(below.as_bytes());
    }
    // Hosts that share a key may send several lists of one tree at the same time.
    if let Some(listed) = listed {
        hasher.update(&(u64::MAX - 1).to_be_bytes());
        for path in listed.paths() {
            hasher.update(&(path.len() as u64).to_be_bytes());
            hasher.update(path);
        }
    }
    let mut name = [0; 16];
    hasher.finalize_xof().fill(&mut name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_try_of_a_transfer_has_the_name_of_the_first() {
        let identity = |byte| Identity::new(crate::secret::Secret::new([byte; 32]));
        let below = |byte, paths: &[&str], below: Option<&str>| {
            let paths = paths.iter().map(PathBuf::from).collect::<Vec<_>>();
            let below: Option<Subdirectory> = below.map(|below| below.parse().unwrap());
            transfer_of(&identity(byte), &paths, false, (below.as_ref(), None))
        };
        let name = |byte, paths: &[&str]| below(byte, paths, None);
        assert_eq!(name(1, &["/a", "/b"]), name(1, &["/a", "/b"]));
        assert_ne!(name(1, &["/a", "/b"]), name(1, &["/a/b"]));
        assert_ne!(name(1, &["/a"]), name(2, &["/a"]));
        assert_eq!(name(1, &["/a"]), name(1, &["/a//"]));
        assert_ne!(name(1, &["/a"]), name(1, &["/a/."]));
        assert_eq!(below(1, &["/a"], Some("b")), below(1, &["/a"], Some("b/")));
        assert_ne!(below(1, &["/a"], Some("b")), below(1, &["/a"], Some("c")));
        assert_ne!(name(1, &["/a"]), below(1, &["/a"], Some("b")));
        let listed = |lines: &[u8]| {
            let listed = ListedPaths::read(lines).unwrap();
            transfer_of(&identity(1), &[PathBuf::from("/a")], false, (None, Some(&listed)))
        };
        assert_eq!(listed(b"b\nc\n"), listed(b"c\n./b\n"));
        assert_ne!(listed(b"b\nc\n"), listed(b"b\n"));
        assert_ne!(listed(b"b\n"), name(1, &["/a"]));
    }
}
