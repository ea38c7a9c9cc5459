//! Upper and lower case as Java's `Character` has them: one character to one.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::set::CodeSet;

pub(super) fn upper(code: u32) -> u32 {
    match code {
        // Their full mappings have two characters, their simple ones do not.
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => code + 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => code + 9,
        // Cased in Unicode 14 and later.
        0x2c5f | 0xa7c1 | 0xa7d1 | 0xa7d7 | 0xa7d9 => code,
        0x1_0597..=0x1_05bc => code,
        _ => simple(code, char::to_uppercase),
    }
}

pub(super) fn lower(code: u32) -> u32 {
    match code {
        0x130 => 0x69,
        0x2c2f | 0xa7c0 | 0xa7d0 | 0xa7d6 | 0xa7d8 => code,
        0x1_0570..=0x1_0595 => code,
        _ => simple(code, char::to_lowercase),
    }
}

fn simple<I: ExactSizeIterator<Item = char>>(code: u32, map: impl Fn(char) -> I) -> u32 {
    let Some(character) = char::from_u32(code) else { return code };
    let mut mapped = map(character);
    match (mapped.len(), mapped.next()) {
        (1, Some(mapped)) => u32::from(mapped),
        _ => code,
    }
}

/// Returns what a character is compared as when case does not matter.
pub(super) fn fold(code: u32) -> u32 {
    lower(upper(code))
}

/// Every character that has a case.
struct Cased {
    codes: Vec<u32>,
    by_fold: HashMap<u32, Vec<u32>>,
}

static CASED: LazyLock<Cased> = LazyLock::new(|| {
    // No character beyond the Adlam block has a case.
    let codes: Vec<u32> =
        (0..0x1_e960).filter(|code| upper(*code) != *code || lower(*code) != *code).collect();
    let mut by_fold: HashMap<u32, Vec<u32>> = HashMap::new();
    for code in &codes {
        by_fold.entry(fold(*code)).or_default().push(*code);
    }
    Cased { codes, by_fold }
});

/// Returns the characters that a single character stands for under `(?iu)`.
pub(super) fn unicode_single(code: u32) -> CodeSet {
    let folded = fold(code);
    if upper(code) == folded {
        return CodeSet::of(code);
    }
    let alike = CASED.by_fold.get(&folded).map(Vec::as_slice).unwrap_or_default();
    CodeSet::of_ranges(alike.iter().chain([&folded]).map(|code| (*code, *code)))
}

/// Returns the characters that a range stands for under `(?iu)`.
pub(super) fn unicode_range(first: u32, last: u32) -> CodeSet {
    let inside = |code: u32| (first..=last).contains(&code);
    let cased = CASED.codes.iter().filter(|code| inside(upper(**code)) || inside(fold(**code)));
    CodeSet::of_ranges(cased.map(|code| (*code, *code)).chain([(first, last)]))
}

/// Returns the characters that a range stands for under `(?i)`: only ASCII letters have a case.
pub(super) fn ascii_range(first: u32, last: u32) -> CodeSet {
    let inside = |code: u32| (first..=last).contains(&code);
    let letters = (0x41..=0x5a_u32).chain(0x61..=0x7a);
    let other = letters.filter(|code| inside(code ^ 0x20));
    CodeSet::of_ranges(other.map(|code| (code, code)).chain([(first, last)]))
}
