//! Packs and packets as remotes send them, whole and damaged.

use std::io::Write as _;

use super::*;

const LIMITS: ObjectLimits = ObjectLimits { bytes: 1000, count: 3 };

fn entry(kind: u8, size: usize, base: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | u8::try_from(size & 0x0f).unwrap()];
    let mut rest = size >> 4;
    while rest > 0 {
        *bytes.last_mut().unwrap() |= 0x80;
        bytes.push(u8::try_from(rest & 0x7f).unwrap());
        rest >>= 7;
    }
    bytes.extend(base);
    let mut packed = flate2::write::ZlibEncoder::new(bytes, flate2::Compression::fast());
    packed.write_all(data).unwrap();
    packed.finish().unwrap()
}

fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PACK\0\0\0\x02\0\0\0".to_vec();
    bytes.push(u8::try_from(entries.len()).unwrap());
    bytes.extend(entries.concat());
    let trailer = Sha1::digest(&bytes);
    bytes.extend(trailer);
    bytes
}

/// Puts bytes into packets of a side band, with progress between.
fn in_packets(bytes: &[u8]) -> Vec<u8> {
    let mut all = b"0008NAK\n".to_vec();
    for part in bytes.chunks(7) {
        all.extend(format!("{:04x}\x01", part.len() + 5).into_bytes());
        all.extend(part);
        all.extend(b"0009\x02PACK");
    }
    all.extend(b"0000");
    all
}

fn take(bytes: &[u8], at_once: usize) -> Result<(), Excess> {
    let mut guard = Guard::new(LIMITS);
    bytes.chunks(at_once).try_for_each(|it| guard.take(it))
}

#[test]
fn a_remote_that_gives_up_says_why() {
    for (text, expected) in [
        ("fatal: out of memory\n", "fatal: out of memory".to_owned()),
        ("", String::new()),
        (&*"x".repeat(9_000), "x".repeat(LONGEST_FATAL)),
    ] {
        let packet = format!("0008NAK\n{:04x}\x03{text}", text.len() + 5);
        for at_once in [1, 7, 100_000] {
            let fatal = Err(Excess::Fatal(expected.clone()));
            assert_eq!(take(packet.as_bytes(), at_once), fatal);
            let mut guard = Guard::of_push();
            let taken = packet.as_bytes().chunks(at_once).try_for_each(|it| guard.take(it));
            assert_eq!(taken, fatal);
        }
    }
}

#[test]
fn packs_are_followed_however_they_arrive() {
    let delta = [200, 7, 200, 7, 0x90, 5];
    let good = pack(&[
        entry(3, 1000, &[], &[b'a'; 1000]),
        entry(6, 6, &[0x81, 5], &delta),
        entry(7, 6, &[9; 20], &delta),
    ]);
    let limit = |text: &str| Err(Excess::Limit(text.to_owned()));
    let makes_more = [200, 7, 233, 7, 0x90, 5];
    for (bytes, expected) in [
        (good, Ok(())),
        (
            pack(&[entry(3, 1001, &[], &[b'a'; 1001])]),
            limit("it has an object of 1001 bytes, and 1000 are taken"),
        ),
        (
            pack(&[entry(6, 6, &[5], &makes_more)]),
            limit("it has an object of 1001 bytes, and 1000 are taken"),
        ),
        (
            pack(&[entry(3, 1, &[], b"a"), entry(3, 3 << 30, &[], b"a")]),
            limit("it has an object of 3221225472 bytes, and 1000 are taken"),
        ),
        (pack(&vec![entry(3, 1, &[], b"a"); 4]), limit("it sends 4 objects, and 3 are taken")),
        (
            pack(&[entry(3, 2, &[], b"abc")]),
            Err(Excess::Malformed("an object is larger than its declared size")),
        ),
        (
            pack(&[entry(3, 4, &[], b"abc")]),
            Err(Excess::Malformed("an object is smaller than its declared size")),
        ),
    ] {
        for at_once in [1, 3, 64, 100_000] {
            assert_eq!(take(&in_packets(&bytes), at_once), expected, "{at_once}");
            let raw = [b"0008NAK\n", bytes.as_slice()].concat();
            assert_eq!(take(&raw, at_once), expected, "{at_once}, raw");
        }
    }
}

#[test]
fn a_pack_with_any_bit_turned_is_malformed() {
    let whole = pack(&[entry(3, 5, &[], b"hello"), entry(7, 6, &[9; 20], &[5, 5, 0x90, 5, 0, 0])]);
    assert_eq!(take(&in_packets(&whole), 5), Ok(()));
    for at in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        let taken = take(&in_packets(&damaged), 5);
        // The number of objects, and the size of one, may also be too large; an end that does not come is
        // for the reader to find.
        let is_size = matches!(taken, Err(Excess::Limit(_)));
        let waits = taken.is_ok() && (64..whole.len() * 8 - 160).contains(&at);
        let is_malformed = matches!(taken, Err(Excess::Malformed(_)));
        assert!(is_malformed || is_size || waits, "bit {at}: {taken:?}");
    }
}

#[test]
fn refs_whose_names_are_not_utf8_are_named() {
    let id = "a".repeat(40);
    let line = |name: &[u8]| {
        let length = format!("{:04x}", id.len() + name.len() + 5);
        [length.as_bytes(), id.as_bytes(), b" ", name].concat()
    };
    let all = [
        line(b"refs/heads/m\xfcll\0symref=HEAD:refs/heads/\xfc\n"),
        line(b"HEAD\0symref=HEAD:refs/heads/\xfc\n"),
        line("refs/heads/f\u{fc}r\n".as_bytes()),
        line(b"refs/tags/f\xfcr"),
        b"0000".to_vec(),
    ]
    .concat();
    for at_once in [1, 7, 10_000] {
        let mut guard = Guard::new(LIMITS);
        assert_eq!(all.chunks(at_once).try_for_each(|it| guard.take(it)), Ok(()));
        assert_eq!(
            guard.refs_not_utf8(),
            ["refs/heads/m\u{fffd}ll", "refs/tags/f\u{fffd}r"],
            "{at_once}"
        );
    }
}

#[test]
fn a_shallow_clone_says_so_in_a_line_of_its_own() {
    let id = "a".repeat(40);
    let line = |text: String| format!("{:04x}{text}", text.len() + 4);
    for (text, expected) in [
        (format!("shallow {id}"), true),
        (format!("{id} refs/heads/shallow\0shallow deepen-since\n"), false),
        ("\x02shallow ".to_owned(), false),
    ] {
        let all = [line(format!("{id} refs/heads/main\n")), line(text.clone())].concat() + "0000";
        for at_once in [1, 7, 10_000] {
            let mut guard = Guard::new(LIMITS);
            all.as_bytes().chunks(at_once).try_for_each(|it| guard.take(it)).unwrap();
            assert_eq!(guard.is_shallow(), expected, "{text:?} {at_once}");
        }
    }
}

#[test]
fn what_answers_a_push_has_no_pack_and_an_end() {
    let answer =
        b"001f# service=git-receive-pack\n0000002e\x01000eunpack ok\n0017ok refs/heads/main\n\
                   0000000a\x02words0000";
    let packed = in_packets(&pack(&[entry(3, 1, &[], b"a")]));
    for (bytes, expected) in [
        (answer.as_slice(), Ok(())),
        (b"0008NAK\nPACK", Err(Excess::Malformed("a pack answers a push"))),
        (b"HTTP/1.1", Err(Excess::Malformed("a packet has no length"))),
        // The first band is text here.
        (&packed, Ok(())),
    ] {
        for at_once in [1, 3, 100_000] {
            let mut guard = Guard::of_push();
            let taken = bytes.chunks(at_once).try_for_each(|it| guard.take(it));
            assert_eq!(taken, expected, "{at_once}");
        }
    }
    let line = format!("003d{} refs/heads/main\n", "a".repeat(40));
    let mut guard = Guard::of_push();
    let taken =
        (0..2 * BESIDE_PACKS).step_by(line.len()).try_for_each(|_| guard.take(line.as_bytes()));
    assert!(matches!(taken, Err(Excess::Limit(_))), "{taken:?}");
}

#[test]
fn an_invalid_packet_is_refused() {
    assert_eq!(take(b"HTTP/1.1", 3), Err(Excess::Malformed("a packet has no length")));
    assert_eq!(take(b"001e# service=git-upload-pack\n0000", 3), Ok(()));
}
