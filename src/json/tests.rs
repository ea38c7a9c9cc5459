use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::Cursor;

/// What is put into a text, in place of some characters or of none.
#[rustfmt::skip]
const PIECES: [&str; 40] = [
    "", "\"", "\\", ",", ":", "{", "}", "[", "]", " ", "\n", "0", "7", "-", ".", "e", "+", "t",
    "null", "true", "\\n", "\\u0041", "\\ud83d", "\\x", "\u{1f}", "\u{7f}", "é", "\u{a0}", "$",
    "\"a\":", "\"$a\":", "{}", "[]", "\"\",", "],", "},", "01", "1.", "-0.5e+7", "\"b\":\"c\",",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => (0..1_000_u64).prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        4 => "[ -~]{0,12}".prop_map(Value::from),
        // Longer than the scanner marks at once.
        2 => "[a-zé\n\"\\\\]{0,90}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        let key = "[a-z$\"{]{0,12}";
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..8)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Returns texts as programs write them, each changed at a place behind its begin.
fn text() -> impl Strategy<Value = String> {
    (value(), any::<bool>(), any::<Index>(), 0..4_usize, select(&PIECES[..])).prop_map(
        |(value, is_indented, place, removed, piece)| {
            let text = if is_indented { format!("{value:#}") } else { value.to_string() };
            let count = text.chars().count();
            let at = 1 + place.index(count);
            let before: String = text.chars().take(at).collect();
            let behind: String = text.chars().skip(at + removed).collect();
            before + piece + &behind
        },
    )
}

/// Returns whether the cursor takes a text as one value and nothing else.
fn is_taken(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.skip().is_some() && cursor.is_at_end()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_text_is_taken_if_the_json_library_takes_it(text in text()) {
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        // Such keys, and halves of a pair of surrogates, may be left to the library.
        if text.contains(['\\', '$']) {
            prop_assert!(is_json || !is_taken(&text), "{text:?}");
        } else {
            prop_assert_eq!(is_taken(&text), is_json, "{:?}", text);
        }
    }
}
