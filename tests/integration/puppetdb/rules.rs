//! Rules to be translated.

use serde_json::{Value, json};

/// What people write; each of these has a query in both formats.
pub(super) fn everyday() -> Vec<Value> {
    let mut rules = vec![
        json!(["and", ["~", "name", ".*"]]),
        json!(["=", "name", "web1.example.com"]),
        json!(["or", ["=", "name", "web1.example.com"], ["=", "name", "db1.example.com"]]),
        json!(["~", "name", "^web\\d+\\."]),
        json!(["~", "name", "\\.example\\.com$"]),
        json!(["not", ["~", "name", "\\.example\\.com$"]]),
        json!(["=", ["fact", "os", "family"], "RedHat"]),
        json!(["=", ["facts", "kernel"], "Linux"]),
        json!(["~", ["fact", "os", "name"], "(?i)^(debian|ubuntu)$"]),
        json!(["not", ["=", ["fact", "kernel"], "windows"]]),
        json!(["not", ["=", ["fact", "os", "family"], "windows"]]),
        json!(["not", ["~", ["fact", "os", "family"], "^win"]]),
        json!([">=", ["fact", "os", "release", "major"], "9"]),
        json!(["<", ["fact", "os", "release", "major"], "10"]),
        json!([">", ["fact", "memory", "system", "total_bytes"], "17179869183"]),
        json!([">=", ["fact", "processors", "count"], "8"]),
        json!(["not", [">=", ["fact", "processors", "count"], "8"]]),
        json!([">", ["fact", "load_averages", "1m"], "0.5"]),
        json!(["=", ["fact", "load_averages", "1m"], "0.5"]),
        json!(["=", ["fact", "processors", "count"], "8"]),
        json!(["=", ["fact", "is_virtual"], "true"]),
        json!(["=", ["fact", "is_virtual"], "false"]),
        json!(["=", ["trusted", "certname"], "web2.example.com"]),
        json!(["=", ["trusted", "extensions", "pp_role"], "web"]),
        json!(["~", ["trusted", "extensions", "pp_role"], "^mail(::.*)?$"]),
        json!(["=", ["trusted", "extensions", "1.3.6.1.4.1.34380.1.1.9812"], "puppet/server"]),
        json!(["=", ["fact", "processors", "models", 0], "Xeon"]),
        json!(["~", ["fact", "processors", "models", 0], "^Xe"]),
        json!(["<:", ["fact", "processors", "models"], "Xeon"]),
        json!(["=", ["fact", "networking", "interfaces", "eth0.5", "mtu"], "9000"]),
        json!(["=", ["fact", "partitions", "/dev/sda1", "mount"], "/"]),
        json!(["~", ["fact", "networking", "ip"], "^10\\.0\\.(4|32)\\."]),
        json!(["~", ["fact", "agent_specified_environment"], ".+"]),
        json!([
            "and",
            [
                "or",
                ["=", ["trusted", "extensions", "pp_role"], "web"],
                ["=", ["trusted", "extensions", "pp_role"], "db"]
            ],
            ["not", ["~", ["trusted", "certname"], "\\.test\\."]],
            [">", ["fact", "memory", "system", "total_bytes"], "4294967296"],
        ]),
        json!([
            "or",
            [
                "and",
                ["~", ["fact", "os", "name"], "Deb"],
                ["not", ["=", "name", "web2.example.com"]]
            ],
            ["=", "name", "bare"]
        ]),
        json!([
            "not",
            [
                "or",
                ["=", ["fact", "kernel"], "Linux"],
                ["not", [">", ["fact", "processors", "count"], "4"]]
            ]
        ]),
    ];
    // A value compares in the same way at every path.
    for path in paths().into_iter().take(8) {
        for text in ["true", "false", "5", "5.0", "a", "", "😀"] {
            rules.push(json!(["=", path, text]));
            rules.push(json!(["not", ["=", path, text]]));
        }
        for number in ["5", "-5", "0", "0.5", "9.99", "10", "9007199254740992"] {
            for operator in [">", ">=", "<", "<="] {
                rules.push(json!([operator, path, number]));
            }
        }
        for pattern in ["a", "^a$", "^$", "5", "^\\d+$", "[^a-z]", "."] {
            rules.push(json!(["~", path, pattern]));
            rules.push(json!(["not", ["~", path, pattern]]));
        }
        rules.push(json!(["<:", path, "a"]));
        rules.push(json!(["not", ["<:", path, "5"]]));
    }
    rules
}

/// Rules that no query can say, with the reason.
pub(super) fn refused() -> Vec<(Value, &'static str)> {
    vec![
        (json!(["=", "clientcert", "a"]), "nothing is ever found at its path"),
        (json!(["=", ["fact", 0], "a"]), "nothing is ever found at its path"),
        (json!(["=", ["name", "a"], "a"]), "nothing is ever found at its path"),
        (json!(["=", ["fact"], "a"]), "its path leads to no single value"),
        (
            json!(["=", ["fact", "trusted", "certname"], "a"]),
            "a fact named `trusted` is never read",
        ),
        (json!(["=", ["fact", "deep", "a\"b"], "a"]), "PuppetDB cannot be asked for such a key"),
        (json!(["=", ["fact", "deep", ""], "a"]), "PuppetDB cannot be asked for such a key"),
        (json!(["=", ["fact", "deep", "b[0]"], "a"]), "PuppetDB cannot be asked for such a key"),
        (
            json!(["=", ["fact", "deep", "a\u{2028}b"], "a"]),
            "PuppetDB cannot be asked for such a key",
        ),
        (
            json!(["=", ["fact", "dot.ted", 0], "a"]),
            "PuppetDB finds nothing at an index right after a key in quotes",
        ),
        (json!(["=", ["fact", "a", 0, 1], "a"]), "PuppetDB cannot be asked for arrays in arrays"),
        (json!(["not", ["~", "name", ".*"]]), "no node can meet it"),
        (json!(["<:", "name", "a"]), "a name is not an array"),
        (json!([">", ["fact", "x"], "a"]), "its value is not a number"),
        (json!([">", ["fact", "x"], "1e99"]), "its number has too many digits"),
        (json!(["=", ["fact", "x"], "a\u{0}"]), "PuppetDB has no U+0000"),
        (json!(["~", ["fact", "x"], "\\bweb"]), "PostgreSQL has other words than `\\b`"),
        (
            json!(["~", ["fact", "x"], "(a)\\1"]),
            "PostgreSQL reads references to groups differently",
        ),
        (
            json!(["and", ["=", "name", "a"], ["~", "name", "(?m)^a"]]),
            "PostgreSQL has other lines than `(?m)`",
        ),
    ]
}

fn paths() -> Vec<Value> {
    vec![
        json!(["fact", "x"]),
        json!(["fact", "deep", "v"]),
        json!(["fact", "deep", "list", 0]),
        json!(["fact", "deep", "list", 2, "k"]),
        json!(["trusted", "extensions", "pp_role"]),
        json!(["trusted", "extensions", "1.3.6.1"]),
        json!(["fact", "deep", "sp ace"]),
        json!(["fact", "dot.ted"]),
        // Only random rules ask for these.
        json!("name"),
        json!(["name"]),
        json!(["facts", "UPPER"]),
        json!(["fact", "a-b"]),
        json!(["fact", "é"]),
        json!(["fact", "7"]),
        json!(["fact", "deep", "dot.ted"]),
        json!(["fact", "deep", "a'b?"]),
        json!(["fact", "deep", "0"]),
        json!(["fact", "deep", 0]),
        json!(["fact", "deep", "-1"]),
        json!(["fact", "deep", "list"]),
        json!(["fact", "deep", "list", "0"]),
        json!(["fact", "deep", "list", 9]),
        json!(["fact", "x", 0]),
        json!(["fact", "x", "0"]),
        json!(["fact", "x", "a"]),
        json!(["fact", "x", 0, 0]),
        json!(["fact", "x", "0", 0]),
        json!(["fact", "x", 0, "a"]),
        json!(["fact", "x", "5"]),
        json!(["fact", "deep", "v", "a", 0]),
        json!(["fact", "X"]),
        json!(["fact", "deep"]),
        json!(["trusted", "extensions"]),
        json!(["trusted", "certname"]),
        json!(["fact", "absent", "absent"]),
        json!(["trusted", "absent"]),
        json!(["fact", "y"]),
        json!(["fact", "deep", "list", 0, 0]),
        json!(["trusted", "extensions", "pp_role", 1]),
        json!(["fact", "os", "release", "major"]),
        json!(["fact", "processors", "models"]),
    ]
}

const TEXTS: &[&str] = &[
    "a",
    "A",
    "b",
    "z",
    "abc",
    "",
    " ",
    "true",
    "false",
    "null",
    "5",
    "5.0",
    "05",
    " 5",
    ".5",
    "0.5",
    "-5",
    "0",
    "-0",
    "10",
    "7.25",
    "9007199254740993",
    "12345678901234567890",
    "é",
    "😀",
    "Straße",
    "[z",
    "[\"a\"]",
    "a\\b",
    "a\"b",
    "a'b?",
    "a\n",
    "a\u{2028}",
    "\u{2029}",
    "web01",
    "v10",
    "bare",
    "9",
    "1e3",
];

const NUMBERS: &[&str] = &[
    "5",
    "5.0",
    "-5",
    "0",
    "-0",
    "0.5",
    ".25",
    "10",
    "7.25",
    "9007199254740992",
    "1e3",
    " 9 ",
    "-1e-2",
    "12345678901234567889.5",
    "100",
    "+4",
    "17179869184",
    "a",
    "",
];

const PATTERNS: &[&str] = &[
    "a",
    "^a",
    "a$",
    "^a$",
    "a\\z",
    "a\\Z",
    "\\Aa",
    "",
    "^$",
    ".",
    "..",
    "^.$",
    "^.*$",
    "\\d",
    "^\\d+$",
    "\\D",
    "\\w",
    "^\\w+$",
    "\\W",
    "\\s",
    "\\S",
    "\\h",
    "[a-c]",
    "[^a-c]",
    "^[^a]",
    "(?i)A",
    "(?i)STRASSE",
    "(?iu)s",
    "(?iu)k",
    "(?s)a.b",
    "a.b",
    "a\\nb",
    "\\r$",
    "\\n$",
    "\\r\\n",
    "a|5",
    "^(a|5)$",
    "(a|b)*c",
    "a{1,2}b?",
    "a*?b",
    "(?:ab)+c",
    "a(?!b)",
    "a(?=b)",
    "(?<=a)b",
    "(?<!a)b",
    "\\[",
    "\"",
    "\\\\",
    "\\{",
    "\\Qa.c\\E",
    "a\\.c",
    "true",
    "^true$",
    "null",
    "5",
    "^-?5",
    "é",
    "e\\x{301}",
    "^\\x{1F600}$",
    "[😀é]",
    "\\p{Alpha}",
    "\\p{Lu}",
    "[[:alpha:]]",
    "[a-z&&[^b]]",
    "\\bab",
    "(a)\\1",
    "a++",
    "(?m)^b$",
    "\\R",
    "z",
    "(?d)a$",
    "(a?)*b",
    "[\\p{L}&&[a-z]]",
    "^v0",
    "\\x{2028}",
    "a\u{2028}",
    "^[^\u{2029}]$",
    "***",
    "'",
    "\\?",
    "%",
    "_",
    "Z0-9",
    "[-a]",
];

/// A source of numbers that are the same in every run.
pub(super) struct Seed(pub(super) u64);

impl Seed {
    fn next(&mut self, below: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((word ^ (word >> 31)) % u64::try_from(below).unwrap()).unwrap()
    }

    fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.next(of.len())]
    }

    /// Makes a rule; some are none that we read.
    pub(super) fn rule(&mut self, depth: usize) -> Value {
        match self.next(if depth == 0 { 6 } else { 10 }) {
            6 | 7 => {
                let count = self.next(3) + 1;
                let terms = (0..count).map(|_| self.rule(depth - 1));
                std::iter::once(json!("and")).chain(terms).collect()
            }
            8 => {
                let count = self.next(3) + 1;
                let terms = (0..count).map(|_| self.rule(depth - 1));
                std::iter::once(json!("or")).chain(terms).collect()
            }
            9 => json!(["not", self.rule(depth - 1)]),
            kind => {
                let path = self.one(&paths()).clone();
                match kind {
                    0 | 1 => json!(["=", path, self.one(TEXTS)]),
                    2 | 3 => json!(["~", path, self.one(PATTERNS)]),
                    4 => json!([self.one(&[">", ">=", "<", "<="]), path, self.one(NUMBERS)]),
                    _ => json!(["<:", path, self.one(TEXTS)]),
                }
            }
        }
    }
}
