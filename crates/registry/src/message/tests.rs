use super::*;
use byway_wire::relay::{Grant, Minute, RelayKey, Scope, Terms};
use byway_wire::secret::Secret;
use proptest::prelude::*;

fn proof() -> WordProof {
    WordProof { number: 7, secret: Secret::new([9; 16]) }
}

fn address() -> SocketAddr {
    "192.0.2.1:4748".parse().unwrap()
}

pub(crate) fn listed() -> Listed {
    let terms = Terms {
        expiry: Minute::from_unix(1_800_000_000),
        rate: RateClass(0x80),
        quota: QuotaClass::UNLIMITED,
        scope: Scope::ALL,
    };
    let word = RelayKey::new(&[1; 32]).issue(Grant { id: 5, terms }, vec![address()]).unwrap();
    let (operator, region) = (Label::new("Example"), Label::new("eu"));
    Listed { relay: RelayId([3; 16]), operator, region, seen: 4, load: 1000, tcp: true, word }
}

fn enrol() -> Enrol {
    Enrol {
        proof: proof(),
        relay: RelayId([2; 16]),
        range: 5,
        range_key: RangeKey::new([6; 32]),
        rate: RateClass::UNLIMITED,
        quota: QuotaClass(3),
        operator: Label::new("Example"),
        region: Label::new("eu"),
        addresses: vec![address(), "[2001:db8::1]:9".parse().unwrap()],
        seen: true,
    }
}

#[test]
fn requests_are_read_as_they_were_written() {
    let ask = RelayQuery { proof: proof(), most: 100, skip: 300 };
    let complain = Request::Complain { proof: proof(), relays: vec![RelayId([1; 16]), RelayId([2; 16])] };
    for request in [Request::Enrol(enrol().into()), Request::Ready, Request::Ask(ask), complain] {
        assert_eq!(Request::read(&request.to_bytes()), Ok(request));
    }
    let bytes = Request::Ask(RelayQuery { proof: proof(), most: 100, skip: 300 }).to_bytes();
    assert_eq!(bytes, [b"\x03\x00\x00\x00\x07".as_slice(), &[9; 16], b"\x64\x01\x2c"].concat());
}

#[test]
fn answers_are_read_as_they_were_written_and_the_longest_fits() {
    let many = |count| RelayList { made: 1, until: 2, more: true, relays: vec![listed(); count] };
    let mut long = listed();
    let text = Label::new(&"x".repeat(100));
    (long.operator, long.region) = (text.clone(), text);
    let longest = Answer::List(RelayList { relays: vec![long; MAX_RELAYS], ..many(0) });
    let enrolled = Answer::Enrolled {
        beat_millis: 10_000,
        passed: vec![address()],
        failed: vec![(address(), Failure::NoPacket)],
    };
    let refused = Reason::ALL.map(|reason| Answer::Refused { reason, retry: 5 });
    let epoch = Answer::Epoch { epoch: 4, last_holds: 3600 };
    for answer in [epoch, enrolled, Answer::List(many(3)), longest, Answer::Heard].into_iter().chain(refused)
    {
        assert_eq!(Answer::read(&answer.to_bytes()), Ok(answer));
    }
}

#[test]
fn an_entry_that_tells_no_carriers_is_of_a_relay_over_udp_alone() {
    let list = RelayList { made: 1, until: 2, more: true, relays: vec![listed(); 2] };
    let mut bytes = Answer::List(list.clone()).to_bytes();
    let (head, entries) = bytes.split_at_mut(1 + 8 + 8 + 2);
    assert_eq!(head[17..], [MORE_RELAYS | TELLS_CARRIERS, 2]);
    head[17] = MORE_RELAYS;
    let entry = entries.len() / 2;
    let old = [head, &entries[..entry - 1], &entries[entry..2 * entry - 1]].concat();
    let relays = vec![Listed { tcp: false, ..listed() }; 2];
    assert_eq!(Answer::read(&old), Ok(Answer::List(RelayList { relays, ..list })));
}

#[test]
fn what_nobody_writes_is_refused() {
    for addresses in [vec![], vec!["192.0.2.1:0".parse().unwrap()], vec!["224.0.0.1:5".parse().unwrap()]] {
        let request = Request::Enrol(Enrol { addresses, ..enrol() }.into());
        assert_eq!(Request::read(&request.to_bytes()), Err(DecodeError::Range("addresses")));
    }
    let mut control = Request::Enrol(enrol().into()).to_bytes();
    let at = control.windows(7).position(|it| it == b"Example").unwrap();
    control[at] = 0x1b;
    assert_eq!(Request::read(&control), Err(DecodeError::Range("text")));
    let mut far = Request::Enrol(enrol().into()).to_bytes();
    far[37] = 128;
    assert_eq!(Request::read(&far), Err(DecodeError::Range("range of grants")));
    assert_eq!(Request::read(&[2, 0]), Err(DecodeError::Range("length")));
    assert_eq!(Request::read(&[9]), Err(DecodeError::UnknownType(9)));
}

#[test]
fn a_label_is_short_and_shows_nothing_strange() {
    assert_eq!(Label::new("a\x1b[2Jb\n").as_str(), "a[2Jb");
    assert_eq!(Label::new(&"é".repeat(60)).as_str().len(), MAX_TEXT_LEN);
}

proptest! {
    #[test]
    fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind: u8) {
        let _: (Result<_, _>, Result<_, _>) = (Request::read(&bytes), Answer::read(&bytes));
        bytes.insert(0, kind % 5);
        let _ = Request::read(&bytes);
        bytes[0] = 0x80 + kind % 5;
        let _ = Answer::read(&bytes);
    }
}
