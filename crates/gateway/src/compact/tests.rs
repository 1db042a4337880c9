use super::*;
use crate::testing::{tcp_v4, tcp_v6};
use etherparse::{Ipv4Header, Ipv6Header, TcpHeader};
use proptest::prelude::*;

/// What hosts may put into a packet of one flow.
#[derive(Clone, Debug)]
struct Drawn {
    numbers: [u32; 3],
    words: [u16; 3],
    flags: u16,
    ecn: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

fn options() -> impl Strategy<Value = Vec<u8>> {
    let stamps = any::<[u8; 8]>().prop_map(|stamps| [&[1, 1, 8, 10][..], &stamps].concat());
    let near = any::<[u8; 4]>().prop_map(|[a, b, c, d]| alloc::vec![1, 1, 8, 10, 0, 0, a, b, 0, 0, c, d]);
    let sacks = prop::collection::vec(any::<u8>(), 8..=8)
        .prop_map(|block| [&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10][..], &block].concat());
    let odd = (0usize..=10).prop_flat_map(|words| prop::collection::vec(any::<u8>(), words * 4));
    prop_oneof![Just(Vec::new()), stamps, near, sacks, odd]
}

prop_compose! {
    fn drawn()(
        numbers: [u32; 3], words: [u16; 3], flags in 0u16..0x200, ecn in 0u8..4, options in options(),
        payload in prop::collection::vec(any::<u8>(), 0..40)
    ) -> Drawn {
        Drawn { numbers, words, flags: flags & !6, ecn, options, payload }
    }
}

/// The packet, with checksums as a host has them.
fn packet(v6: bool, drawn: &Drawn) -> Vec<u8> {
    let bit = |bit: u16| drawn.flags >> bit & 1 == 1;
    let [sequence, acknowledgment, stamp] = drawn.numbers;
    let mut tcp = TcpHeader::new(40_000, 873, sequence, drawn.words[0]);
    tcp.acknowledgment_number = acknowledgment;
    (tcp.fin, tcp.syn, tcp.rst, tcp.psh) = (bit(0), bit(1), bit(2), bit(3));
    (tcp.ack, tcp.urg, tcp.ece, tcp.cwr, tcp.ns) = (bit(4), bit(5), bit(6), bit(7), bit(8));
    tcp.urgent_pointer = if tcp.urg { drawn.words[1] } else { 0 };
    tcp.checksum = stamp as u16;
    let length = 20 + drawn.options.len() + drawn.payload.len();
    let mut packet = Vec::new();
    if v6 {
        let mut header = Ipv6Header {
            traffic_class: 8 << 2 | drawn.ecn,
            flow_label: 0xa_bcde.try_into().unwrap(),
            payload_length: length as u16,
            next_header: etherparse::IpNumber::TCP,
            hop_limit: 63,
            ..Ipv6Header::default()
        };
        (header.source[15], header.destination[15]) = (1, 2);
        header.write(&mut packet).unwrap();
    } else {
        let mut header =
            Ipv4Header::new(length as u16, 63, etherparse::IpNumber::TCP, [10, 0, 0, 1], [10, 0, 1, 2])
                .unwrap();
        header.dscp = etherparse::IpDscp::try_new(8).unwrap();
        header.ecn = etherparse::IpEcn::try_new(drawn.ecn).unwrap();
        header.identification = drawn.words[2];
        header.dont_fragment = true;
        header.header_checksum = header.calc_header_checksum();
        header.write(&mut packet).unwrap();
    }
    let at = packet.len();
    tcp.write(&mut packet).unwrap();
    packet[at + 12] = ((5 + drawn.options.len() / 4) as u8) << 4 | packet[at + 12] & 1;
    packet.extend(&drawn.options);
    packet.extend(&drawn.payload);
    packet
}

fn shorten(template: &Template, generation: u8, packet: &[u8]) -> Option<Vec<u8>> {
    let mut buffer = [0; MOST_SHORT];
    let mut writer = Writer::new(&mut buffer);
    let payload = template.shorten(Generation::new(generation), packet, &mut writer)?;
    Some([writer.written(), &packet[payload..]].concat())
}

fn expand(template: &Template, short: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut out = alloc::vec![7; 3];
    let result = template.expand(short, &mut out);
    assert_eq!(out[..3], [7; 3]);
    assert!(result.is_ok() || out.len() == 3, "nothing is written unless all is right");
    result.map(|()| out.split_off(3))
}

const DATA: Drawn = Drawn {
    numbers: [0x1234_5678, 0x9abc_def0, 0xfeed],
    words: [500, 0, 77],
    flags: 0x10,
    ecn: 2,
    options: Vec::new(),
    payload: Vec::new(),
};

fn data() -> Drawn {
    Drawn { options: alloc::vec![1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0], payload: b"payload".to_vec(), ..DATA }
}

#[test]
fn in_hex() {
    let template = Template::of(&packet(false, &data())).unwrap();
    let mut next = Drawn { words: [500, 0, 78], ..data() };
    next.numbers[0] += 7;
    next.options[7] = 5;
    let whole = packet(false, &next);
    let short = shorten(&template, 3, &whole).unwrap();
    // Acknowledgment and window as in the example, timestamps near: 15 bytes instead of 52.
    let expected = [3, 0x10, 0x4d, 0, 78, 0xfe, 0xed, 0x12, 0x34, 0x56, 0x7f, 0, 5, 0, 0];
    assert_eq!(short, [&expected[..], b"payload"].concat());
    assert_eq!(expand(&template, &short), Ok(whole));

    let template = Template::of(&packet(true, &data())).unwrap();
    let answer = Drawn { flags: 0x131, words: [9, 8, 7], options: Vec::new(), payload: Vec::new(), ..data() };
    let whole = packet(true, &answer);
    let short = shorten(&template, 8, &whole).unwrap();
    assert_eq!(short, [0, 0x31, 0xd8, 0xfe, 0xed, 0, 9, 0, 8], "AE and URG; 9 bytes instead of 60");
    assert_eq!(expand(&template, &short), Ok(whole));
}

#[test]
fn an_example_is_as_long_as_its_packet_and_says_which_it_is() {
    for (whole, number) in [(tcp_v4(b"data"), 5), (tcp_v6(b"data"), 5), (tcp_v6(b""), 0), (tcp_v4(b""), 7)] {
        let mut marked = whole.clone();
        let generation = Generation::new(number);
        assert_eq!(Form::of(&whole), Form::Whole);
        mark(&mut marked, generation);
        assert_eq!(Form::of(&marked), Form::Example(generation, whole[0]));
        assert_eq!(marked[1..], whole[1..]);
    }
    for (first, form) in [(0, Form::Short(Generation::new(0))), (7, Form::Short(Generation::new(7)))] {
        assert_eq!(Form::of(&[first]), form);
    }
    for nothing in [&[][..], &[0x08], &[0x18], &[0x20], &[0x45], &[0x6f], &[0x7f]] {
        assert_eq!(Form::of(nothing), Form::Whole);
    }
}

#[test]
fn what_does_not_fit_the_mould_travels_as_it_is() {
    for v6 in [false, true] {
        let whole = packet(v6, &data());
        let template = Template::of(&whole).unwrap();
        let at = if v6 { 40 } else { 20 };
        // Byte, bit: lengths, protocol; of IPv4 also options, fragments and the checksum; TCP's reserved bits, an urgent pointer
        // without URG, SYN and RST.
        let of_ip: &[(usize, u8)] = if v6 {
            &[(5, 1), (6, 1), (0, 0x10)]
        } else {
            &[(0, 1), (3, 1), (6, 0x20), (7, 1), (9, 1), (10, 1), (0, 0x10)]
        };
        let of_tcp =
            [(12, 2), (12, 8), (18, 1), (19, 1), (13, 2), (13, 4)].map(|(byte, bit)| (at + byte, bit));
        for (byte, bit) in of_ip.iter().chain(&of_tcp) {
            let mut odd = whole.clone();
            odd[*byte] ^= bit;
            assert!(Template::of(&odd).is_none() && shorten(&template, 1, &odd).is_none(), "{byte} {bit}");
        }
        for cut in 0..whole.len() {
            assert!(Template::of(&whole[..cut]).is_none());
        }
        assert!(Template::of(&[&whole[..], &[0]].concat()).is_none(), "padding behind the packet");
        // What is the same in all packets of a flow: addresses, lifetime, DSCP, ports; the flow label.
        let fixed: &[usize] = if v6 { &[1, 3, 7, 8, 39, 40, 43] } else { &[1, 6, 8, 12, 19, 20, 23] };
        for byte in fixed {
            let mut other = whole.clone();
            other[*byte] ^= 0x40;
            if !v6 {
                let mut header: [u8; 20] = *other.first_chunk().unwrap();
                [header[10], header[11]] = checksum(&header);
                other[..20].copy_from_slice(&header);
            }
            assert!(Template::of(&other).is_some() && shorten(&template, 1, &other).is_none(), "{byte}");
        }
        assert!(shorten(&template, 1, &packet(!v6, &data())).is_none());
    }
}

#[test]
fn a_checksum_of_ipv4_that_nobody_would_compute_is_left_alone() {
    // Minus zero instead of zero is right by RFC 1071, too.
    let mut whole = packet(false, &data());
    let value = (0..=u16::MAX).find(|value| {
        whole[4..6].copy_from_slice(&value.to_be_bytes());
        checksum(whole.first_chunk().unwrap()) == [0, 0]
    });
    assert!(value.is_some());
    whole[10..12].fill(0);
    assert!(Template::of(&whole).is_some());
    whole[10..12].fill(255);
    assert!(crate::ip::Ip::read(&whole).is_ok() && Template::of(&whole).is_none());
}

#[test]
fn what_is_no_short_header_is_refused() {
    let template = Template::of(&packet(false, &data())).unwrap();
    let short = shorten(&template, 1, &packet(false, &Drawn { payload: Vec::new(), ..data() })).unwrap();
    for cut in 0..short.len() {
        assert_eq!(expand(&template, &short[..cut]), Err(DecodeError::Truncated), "{cut}");
    }
    let mut options = alloc::vec![0, 0x10, 0x1f, 0, 0, 0, 0, 11];
    options.resize(60, 1);
    assert_eq!(expand(&template, &options), Err(DecodeError::Range("options")));
    options[7] = 10;
    assert_eq!(expand(&template, &options).map(|packet| packet.len()), Ok(20 + 20 + 52));
    let mut long = short.clone();
    long.resize(short.len() + (1 << 16) - 52, 0);
    assert_eq!(expand(&template, &long), Err(DecodeError::Range("length of a packet")));
    long.pop();
    assert_eq!(expand(&template, &long).map(|packet| packet.len()), Ok((1 << 16) - 1));
}

proptest! {
    #[test]
    fn what_was_shortened_becomes_the_same_packet_again(
        v6: bool, example in drawn(), next in drawn(), kept in 0u8..8, generation in 0u8..8
    ) {
        let template = Template::of(&packet(v6, &example)).unwrap();
        // Often something is as it was.
        let mut next = next;
        if kept & 1 != 0 { next.numbers[0] = example.numbers[0]; }
        if kept & 2 != 0 { next.numbers[1] = example.numbers[1]; }
        if kept & 4 != 0 { next.words[0] = example.words[0]; }
        let whole = packet(v6, &next);
        let short = shorten(&template, generation, &whole).unwrap();
        prop_assert!(short.len() < whole.len() && short.len() <= MOST_SHORT + next.payload.len());
        prop_assert_eq!(Form::of(&short), Form::Short(Generation::new(generation)));
        prop_assert_eq!(expand(&template, &short), Ok(whole));
    }

    #[test]
    fn bytes_of_whoever_make_no_other_packet_than_the_template_allows(
        v6: bool, example in drawn(), bytes in prop::collection::vec(any::<u8>(), 0..90)
    ) {
        let whole = packet(v6, &example);
        let template = Template::of(&whole).unwrap();
        if let Ok(made) = expand(&template, &bytes) {
            let addresses = if v6 { 8..40 } else { 12..20 };
            prop_assert_eq!(&made[addresses.clone()], &whole[addresses]);
            // It can travel the same way again, unless it would be no such packet.
            if let Some(short) = shorten(&template, 0, &made) {
                prop_assert_eq!(expand(&template, &short), Ok(made));
            }
        }
    }

    #[test]
    fn packets_that_are_no_host_s_are_the_same_again_or_travel_as_they_are(
        v6: bool, example in drawn(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
    ) {
        let mut whole = packet(v6, &example);
        let template = Template::of(&whole).unwrap();
        for (at, byte) in changes {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        if let Some(short) = shorten(&template, 1, &whole) {
            prop_assert_eq!(expand(&template, &short), Ok(whole));
        }
    }
}

/// A packet of the flow with this number, of 100 bytes.
fn numbered(number: u32) -> Vec<u8> {
    let mut next = data();
    next.numbers[0] = number;
    next.payload.resize(48, 0);
    packet(false, &next)
}

const EXIT: (u32, Duration) = (1, Duration::from_millis(20));

fn turn(teaching: &mut Teaching, millis: u64, packet: &[u8]) -> Turn {
    let mut buffer = [0; MOST_SHORT];
    teaching.turn(Instant::from_millis(millis), EXIT, packet, &mut Writer::new(&mut buffer))
}

fn proof(packet: &[u8]) -> u16 {
    Template::of(packet).unwrap().proof()
}

use super::{Teaching, Turn};
use byway_wire::{Duration, Instant};

#[test]
fn packets_travel_whole_until_the_exit_knows_the_example() {
    let mut teaching = Teaching::default();
    let one = Generation::new(1);
    assert_eq!(turn(&mut teaching, 1_000, &numbered(1)), Turn::Example(one));
    assert_eq!(turn(&mut teaching, 1_010, &numbered(2)), Turn::Whole);
    teaching.on_known(one, proof(&numbered(1)) ^ 1);
    teaching.on_known(Generation::new(2), proof(&numbered(1)));
    assert_eq!(turn(&mut teaching, 1_020, &numbered(3)), Turn::Whole, "that was another example");
    teaching.on_known(one, proof(&numbered(1)));
    assert_eq!(turn(&mut teaching, 1_030, &numbered(4)), Turn::Short(52));
    // Another follows soon, since the first packets of a flow are not like the others; then they are rare.
    let mut examples = Vec::new();
    for millis in 1_030..60_000 {
        if let Turn::Example(generation) = turn(&mut teaching, millis, &numbered(millis as u32)) {
            examples.push((millis, generation.number()));
            teaching.on_known(generation, proof(&numbered(millis as u32)));
        }
    }
    let expected = [
        (1_100, 2),
        (1_300, 3),
        (1_700, 4),
        (2_500, 5),
        (4_100, 6),
        (7_300, 7),
        (13_700, 0),
        (26_500, 1),
        (42_500, 2),
        (58_500, 3),
    ];
    assert_eq!(examples, expected);
}

#[test]
fn a_flow_that_sends_little_sends_few_examples() {
    let mut teaching = Teaching::default();
    let mut examples = Vec::new();
    for second in 0..100 {
        let whole = numbered(second as u32);
        if let Turn::Example(generation) = turn(&mut teaching, second * 1_000, &whole) {
            examples.push(second);
            teaching.on_known(generation, proof(&whole));
        }
    }
    assert_eq!(examples, [0, 17, 34, 51, 68, 86]);
}

#[test]
fn an_example_never_takes_the_place_of_the_template_in_use() {
    let mut teaching = Teaching::default();
    let first = turn(&mut teaching, 0, &numbered(0));
    assert_eq!(first, Turn::Example(Generation::new(1)));
    teaching.on_known(Generation::new(1), proof(&numbered(0)));
    let mut exit = Slots::default();
    exit.put(Generation::new(1), Template::of(&numbered(0)).unwrap());
    // No answer ever comes again, though all arrive.
    for millis in 1..100_000u32 {
        let whole = numbered(millis);
        match turn(&mut teaching, millis.into(), &whole) {
            Turn::Example(generation) => exit.put(generation, Template::of(&whole).unwrap()),
            Turn::Short(_) => assert!(exit.get(Generation::new(1)).is_some()),
            Turn::Whole => panic!("the template is known"),
        }
        assert!(exit.get(Generation::new(1)) == Template::of(&numbered(0)).as_ref());
    }
}

#[test]
fn what_changes_for_good_is_told_anew_and_not_faster_than_it_may() {
    let mut teaching = Teaching::default();
    turn(&mut teaching, 0, &numbered(0));
    teaching.on_known(Generation::new(1), proof(&numbered(0)));
    let other = |number| {
        let mut packet = numbered(number);
        packet[8] -= 1;
        let header: [u8; 20] = *packet.first_chunk().unwrap();
        packet[10..12].copy_from_slice(&checksum(&header));
        packet
    };
    let mut told = Vec::new();
    for millis in 1..2_000 {
        let whole = if millis % 2 == 0 { numbered(millis) } else { other(millis) };
        match turn(&mut teaching, millis.into(), &whole) {
            Turn::Example(generation) => {
                told.push(millis);
                teaching.on_known(generation, proof(&whole));
            }
            Turn::Short(_) | Turn::Whole => {}
        }
    }
    assert!((3..=20).contains(&told.len()), "{told:?}");
    assert!(told.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{told:?}");
    // What fits no template is nobody's example.
    let mut fragment = numbered(1);
    fragment[6] |= 0x20;
    assert_eq!(turn(&mut teaching, 99_000, &fragment), Turn::Whole);
}

#[test]
fn an_exit_that_forgot_or_is_another_is_told_again() {
    let mut teaching = Teaching::default();
    turn(&mut teaching, 0, &numbered(0));
    teaching.on_known(Generation::new(1), proof(&numbered(0)));
    let short = turn(&mut teaching, 10, &numbered(1));
    assert_eq!(short, Turn::Short(52));
    // What a path gave back becomes a packet again.
    let mut buffer = [0; MOST_SHORT];
    let mut writer = Writer::new(&mut buffer);
    let template = Template::of(&numbered(0)).unwrap();
    let payload = template.shorten(Generation::new(1), &numbered(1), &mut writer).unwrap();
    let bytes = [writer.written(), &numbered(1)[payload..]].concat();
    let mut out = Vec::new();
    assert!(teaching.recover(Generation::new(1), &bytes, &mut out));
    assert_eq!(out, numbered(1));
    assert!(!teaching.recover(Generation::new(3), &bytes, &mut out));

    teaching.on_unknown(Generation::new(0));
    assert_eq!(turn(&mut teaching, 20, &numbered(1)), Turn::Short(52), "that was not asked");
    teaching.on_unknown(Generation::new(1));
    assert_eq!(turn(&mut teaching, 30, &numbered(2)), Turn::Example(Generation::new(2)));
    teaching.on_known(Generation::new(2), proof(&numbered(2)));
    assert_eq!(turn(&mut teaching, 40, &numbered(3)), Turn::Short(52));
    let mut buffer = [0; MOST_SHORT];
    let anew =
        teaching.turn(Instant::from_millis(50), (2, EXIT.1), &numbered(4), &mut Writer::new(&mut buffer));
    assert_eq!(anew, Turn::Example(Generation::new(3)));
    assert_eq!(turn(&mut teaching, 60, &numbered(5)), Turn::Example(Generation::new(4)), "and back");
}
