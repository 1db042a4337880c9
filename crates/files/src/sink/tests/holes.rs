//! Attacks of a hostile sender with files that are mostly zeros.

use super::*;

#[test]
fn holes_stay_holes() {
    let mut contents = vec![0; 4 << 20];
    contents[2 << 20] = 1;
    let mut host = Host::new();
    assert_eq!(host.send(b"sparse", &contents), Finish::Verified);
    let (_, top) = host.end();
    let path = top.path().join("sink/sparse");
    assert!(fs::read(&path).unwrap() == contents);
    // One write is one run: cut as the network cuts it, only what is not zero takes room.
    let mut host = Host::new();
    let object = host.file(b"sparse", &contents);
    for (index, piece) in contents.chunks(64 << 10).enumerate() {
        host.sink.write(object, index as u64 * (64 << 10), piece).unwrap();
    }
    assert_eq!(host.fill(object, &contents), Finish::Verified);
    let (_, top) = host.end();
    let path = top.path().join("sink/sparse");
    assert!(fs::read(&path).unwrap() == contents);
    assert!(fs::metadata(&path).unwrap().blocks() * 512 <= 1 << 20);
}

/// Announces a file of this size that is one hole.
fn hole(host: &mut Host, path: &[u8], size: u64) -> ObjectId {
    let mut all = RangeSet::new();
    all.insert(0, Layout::new(size).count().into());
    let (bytes, _) = ChunkRanges::write(&all);
    host.say(&Record::Holes(ChunkRanges::written(&bytes))).unwrap();
    let object = ObjectId(host.counts.files as u32);
    host.counts.files += 1;
    host.counts.bytes += size;
    host.say(&Record::File { object, size, metadata: META, path }).unwrap();
    object
}

/// A few bytes say that there are tebibytes of zeros: they are to cost about as little.
#[test]
fn holes_of_tebibytes_cost_next_to_nothing() {
    let mut host = Host::new();
    for number in 0..200_u32 {
        hole(&mut host, format!("f{number}").as_bytes(), 1 << 40);
    }
    // What is to be done is a mebibyte's worth at most each time.
    let calls = (0..100).take_while(|_| host.sink.work(1 << 20).unwrap()).count();
    assert_eq!(calls, 0, "of 100 calls that had something to do");
    for number in 0..200 {
        host.say(&Record::Hash { object: ObjectId(number), hash: [0; 32] }).unwrap();
    }
    assert_eq!(host.problems(), vec![Reason::Integrity; 200]);
}

#[test]
fn a_file_of_one_hole_has_its_size_and_takes_no_room() {
    let mut host = Host::new();
    let size = (1 << 30) + 5;
    let object = hole(&mut host, b"empty", size);
    let mut all = RangeSet::new();
    all.insert(0, Layout::new(size).count().into());
    let hash = crate::chunks::Hashes::new(Layout::new(size), all).root().unwrap();
    host.say(&Record::Hash { object, hash }).unwrap();
    let (failed, top) = host.end();
    assert_eq!(failed, []);
    let metadata = fs::metadata(top.path().join("sink/empty")).unwrap();
    assert!(metadata.len() == size && metadata.blocks() < 64, "{metadata:?}");
    // A file of one chunk has none.
    let mut host = Host::new();
    host.say(&Record::Holes(ChunkRanges::written(&[0, 0]))).unwrap();
    let file = Record::File { object: ObjectId(0), size: 1_000, metadata: META, path: b"small" };
    assert!(host.say(&file).is_err());
}

/// Data of an earlier attempt in the place of a hole are erased, even if the sender claims to keep
/// them.
#[test]
fn what_lies_where_a_hole_shall_be_is_emptied() {
    let chunk = crate::chunks::MIN_CHUNK_LEN;
    for lies in [false, true] {
        let mut host = Host::new();
        let contents = vec![7; 4 * chunk as usize];
        let object = host.file(b"f", &contents);
        host.sink.write(object, 0, &contents[..2 * chunk as usize]).unwrap();
        let mut host = host.again();
        let mut holes = RangeSet::new();
        holes.insert(1, 4);
        let (bytes, _) = ChunkRanges::write(&holes);
        host.say(&Record::Holes(ChunkRanges::written(&bytes))).unwrap();
        host.file(b"f", &contents);
        assert_eq!(host.asked(), (vec![0, 1], false));
        host.parts(object, if lies { &[(0, 2)] } else { &[(0, 1)] }).unwrap();
        let mut hashes = crate::chunks::Hashes::new(Layout::new(4 * chunk), holes);
        hashes.feed(0, &contents[..chunk as usize], |_, _| ());
        host.say(&Record::Hash { object, hash: hashes.root().unwrap() }).unwrap();
        let (failed, top) = host.end();
        if lies {
            assert_eq!(failed, [Reason::Integrity]);
            continue;
        }
        assert_eq!(failed, []);
        let found = fs::read(top.path().join("sink/f")).unwrap();
        let (data, zeros) = found.split_at(chunk as usize);
        assert!(data.iter().all(|byte| *byte == 7) && zeros.iter().all(|byte| *byte == 0));
    }
}
