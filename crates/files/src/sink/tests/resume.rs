//! Attacks of a hostile sender, or by a changed disk, when a transfer is resumed.

use super::*;

const CHUNK_LEN: usize = crate::chunks::MIN_CHUNK_LEN as usize;

/// A file of four chunks of which an earlier try brought the first, half of the second, and the
/// third.
fn begun() -> (Host, Vec<u8>) {
    let contents: Vec<u8> = (0..4 * CHUNK_LEN).map(|at| (at / 7) as u8).collect();
    let mut host = Host::new();
    let object = host.file(b"f", &contents);
    host.sink.write(object, 0, &contents[..CHUNK_LEN * 3 / 2]).unwrap();
    host.sink.write(object, 2 * CHUNK_LEN as u64, &contents[2 * CHUNK_LEN..3 * CHUNK_LEN]).unwrap();
    let mut host = host.again();
    assert_eq!(host.file(b"f", &contents), ObjectId(0));
    (host, contents)
}

#[test]
fn what_an_earlier_try_left_is_offered_and_the_rest_is_enough() {
    let (mut host, contents) = begun();
    assert_eq!(host.sink.write(ObjectId(0), 0, b"x").unwrap(), Written::Pending);
    assert_eq!(host.sink.finish(ObjectId(0)).unwrap(), Finish::Pending);
    assert_eq!(host.asked(), (vec![0, 2], false));
    host.parts(ObjectId(0), &[(0, 1), (2, 3)]).unwrap();
    let rest = [&contents[CHUNK_LEN..2 * CHUNK_LEN], &contents[3 * CHUNK_LEN..]].concat();
    host.sink.write(ObjectId(0), 0, &rest).unwrap();
    host.say(&Record::Hash { object: ObjectId(0), hash: *blake3::hash(&contents).as_bytes() }).unwrap();
    assert_eq!(host.sink.finish(ObjectId(0)).unwrap(), Finish::Verified);
    assert_eq!(host.sink.summary().kept, 2 * CHUNK_LEN as u64);
    let (_, top) = host.end();
    assert!(fs::read(top.path().join("sink/f")).unwrap() == contents);
}

#[test]
fn a_sender_cannot_keep_what_is_not_there_nor_skip_the_question() {
    for kept in [&[(0, 2)][..], &[(3, 4)], &[(0, 1), (2, 4)]] {
        let (mut host, _) = begun();
        host.asked();
        host.parts(ObjectId(0), kept).unwrap();
        assert_eq!(host.problems(), [Reason::Protocol], "{kept:?}");
    }
    let (mut host, _) = begun();
    assert!(host.parts(ObjectId(0), &[(0, 1)]).is_err(), "before the answer");
    let (mut host, _) = begun();
    host.asked();
    let hash = Record::Hash { object: ObjectId(0), hash: [0; 32] };
    assert!(host.say(&hash).is_err(), "a hash before the parts");
    let (mut host, _) = begun();
    host.asked();
    host.parts(ObjectId(0), &[]).unwrap();
    assert!(host.parts(ObjectId(0), &[]).is_err(), "twice");
    let mut host = Host::new();
    let holes = Record::Holes(ChunkRanges::written(&[0, 0]));
    host.say(&holes).unwrap();
    assert!(host.say(&holes).is_err(), "holes of no file");
    let mut host = Host::new();
    host.say(&Record::Holes(ChunkRanges::written(&[0, 1]))).unwrap();
    let file = Record::File { object: ObjectId(0), size: CHUNK_LEN as u64, metadata: META, path: b"f" };
    assert!(host.say(&file).is_err(), "holes past the end");
    let mut host = Host::new();
    let object = host.file(b"f", b"x");
    assert!(host.parts(object, &[]).is_err(), "in a first try");
    assert!(host.say(&Record::Compare(AGAIN)).is_err(), "later than at the start");
}

#[test]
fn a_journal_that_is_none_costs_nothing_but_reading() {
    let partials = |host: &Host| host.at(".byway-partial").join("00".repeat(16));
    let journal = |host: &Host| {
        let mut names = fs::read_dir(partials(host)).unwrap().map(|entry| entry.unwrap().path());
        names.find(|path| path.extension().is_some()).unwrap()
    };
    type Damage = fn(&Path);
    let damages: [Damage; 4] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "nonsense").unwrap(),
        |path| fs::File::options().write(true).open(path).unwrap().set_len(127).unwrap(),
        |path| fs::hard_link(path, path.with_extension("other")).unwrap(),
    ];
    for damage in damages {
        let (mut host, _) = begun();
        damage(&journal(&host));
        // The chunk of which half is there is offered too: its hash will not be the sender's.
        assert_eq!(host.asked(), (vec![0, 1, 2], false));
    }
    // A journal that says too much makes nobody believe it: the hashes are those of the disk.
    let (mut host, contents) = begun();
    let path = journal(&host);
    let mut bytes = fs::read(&path).unwrap();
    bytes.resize(128 + 4 * 32, 7);
    bytes[128..].fill(7);
    fs::write(&path, bytes).unwrap();
    let object = ObjectId(0);
    assert_eq!(host.asked(), (vec![0, 1, 2, 3], false));
    host.parts(object, &[(0, 4)]).unwrap();
    host.say(&Record::Hash { object, hash: *blake3::hash(&contents).as_bytes() }).unwrap();
    assert_eq!(host.problems(), [Reason::Integrity]);
}

#[test]
fn partial_files_that_somebody_exchanged_are_not_taken_up() {
    type Exchange = fn(&Path, &Path);
    let exchanges: [Exchange; 4] = [
        |partial, treasure| symlink(treasure, partial).unwrap(),
        |partial, treasure| fs::hard_link(treasure, partial).unwrap(),
        |partial, _| fs::create_dir(partial).unwrap(),
        |partial, _| fs::write(partial, "short").unwrap(),
    ];
    for exchange in exchanges {
        let (mut host, contents) = begun();
        let partials = host.at(".byway-partial").join("00".repeat(16));
        let mut names = fs::read_dir(&partials).unwrap().map(|entry| entry.unwrap().path());
        let partial = names.find(|path| path.extension().is_none()).unwrap();
        fs::remove_file(&partial).unwrap();
        exchange(&partial, &host.top.path().join("outside/treasure"));
        assert_eq!(host.asked(), (vec![], false));
        if !partial.is_dir() {
            host.parts(ObjectId(0), &[]).unwrap();
            assert_eq!(host.fill(ObjectId(0), &contents), Finish::Verified);
            host.end();
        }
    }
}

#[test]
fn a_file_in_place_is_kept_whole_or_not_at_all() {
    let contents = vec![5; 2 * CHUNK_LEN + 9];
    let placed = || {
        let mut host = Host::new();
        assert_eq!(host.send(b"f", &contents), Finish::Verified);
        let mut host = host.again();
        let object = host.file(b"f", &contents);
        assert_eq!(host.asked(), (vec![0, 1, 2], true));
        (host, object)
    };
    let (mut host, object) = placed();
    fs::set_permissions(host.at("f"), fs::Permissions::from_mode(0o600)).unwrap();
    host.parts(object, &[(0, 3)]).unwrap();
    host.say(&Record::Hash { object, hash: *blake3::hash(&contents).as_bytes() }).unwrap();
    assert_eq!(host.sink.summary().kept, contents.len() as u64);
    let (_, top) = host.end();
    let mode = fs::metadata(top.path().join("sink/f")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
    let (mut host, object) = placed();
    host.parts(object, &[(0, 2)]).unwrap();
    assert_eq!(host.problems(), [Reason::Protocol]);
    // Another time: it may have the same contents, and the sender believes no time.
    let mut host = Host::new();
    assert_eq!(host.send(b"f", &contents), Finish::Verified);
    let path = host.at("f");
    fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let mut host = host.again();
    let object = host.file(b"f", &contents);
    assert_eq!(host.asked(), (vec![0, 1, 2], true));
    host.parts(object, &[(0, 3)]).unwrap();
    host.say(&Record::Hash { object, hash: *blake3::hash(&contents).as_bytes() }).unwrap();
    let (_, top) = host.end();
    let modified = fs::metadata(top.path().join("sink/f")).unwrap().mtime();
    assert_eq!(modified, META.mtime.seconds, "it has the sender's time now");
}
