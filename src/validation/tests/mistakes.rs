//! The mistakes of beginners: each finding says what is wrong, where, and what to do.

use std::fmt::Write as _;

use super::{checked, findings, related};

const MISTAKES: &[&str] = &[
    "name: A\nclasses:\n\tntp:\n\t  x: 1\n",
    "name: A\nclasses:\n  ntp:\n  \tx: 1\n",
    "name: A\nclasses: \n  ntp:\n    x: 1\n\ty: 2\n",
    "name: A\n  parent: All Nodes\n",
    "name: A\nclasses:\n  ntp:\n      x: 1\n    y: 2\n",
    "name: A\nclasses:\n    ntp: {}\n  apt: {}\n",
    "name: A\n environment: production\n",
    "  name: A\nparent: B\n",
    "name: A\npinned:\n  - a\n - b\n",
    "name: A\ndescription: Web: the front\n",
    "name: Web: x\nparent: B\n",
    "name: \"A\nparent: All Nodes\n",
    "name: \"A\nparent: \"All Nodes\"\n",
    "name: 'A\nparent: All Nodes\n",
    "name: A\ndescription: 'it's here'\n",
    "name: A\nclasses:\n  ntp:\n    x: \"abc\n    y: 1\n",
    "name: A\nclasses:\n  ntp: {servers: [a, b}\n",
    "name: A\npinned: [a, b\nparent: B\n",
    "name: A\nrule: [\"=\", \"name\", \"x\"\n",
    "name: A\nvariables: {a: 1\n",
    "name: A\nrule: '[\"=\", \"name\", \"x\"]'\n",
    "name: A\nrule: '$facts[\"os\"][\"family\"] = Debian'\n",
    "name: A\nrule: $facts['os']['family'] = Debian\n",
    "name: A\nrule: $::osfamily = Debian\n",
    "name: A\nrule: trusted['certname'] = x\n",
    "name: A\nrule: $trusted['extensions']['pp_role'] = x\n",
    "name: A\nrule: facts['os']['family'] = Debian\n",
    "name: A\nrule: os[family] = Debian\n",
    "name: A\nrule: \"%{facts.os.family} = Debian\"\n",
    "name: A\nrule: name ~ '*.web'\n",
    "name: A\nrule: name = web*\n",
    "name: A\nrule: name ~ web*\n",
    "name: A\nrule: name = web-?\n",
    "name: A\nrule: [\"~\", \"name\", \"*.example.com\"]\n",
    "name: A\nrule: [\"=\", \"name\", \"*.example.com\"]\n",
    "name: A\nparameters: {a: 1}\n",
    "name: A\nconfig-data: {a: {b: 1}}\n",
    "name: A\nclass: ntp\n",
    "name: A\nmatch: x = y\n",
    "name: A\nnodes: [a]\n",
    "environment_trumps: false\nparent: 00000000-0000-4000-8000-000000000000\nname: A\nrule: [\"=\", \"name\", \"x\"]\nvariables: {}\nid: 58463036-0efa-4365-b367-b5401c0711d3\nenvironment: production\nclasses: {}\nserial_number: 3\nlast_edited: x\ndeleted: {}\n",
    "name: A\nclasses: [ntp, apt]\n",
    "name: A\nclasses:\n  - ntp\n  - apt\n",
    "name: A\nclasses: ntp\n",
    "name: A\nclasses:\n  ntp\n",
    "- name: A\n  parent: B\n- name: C\n",
    "groups:\n  - name: A\n",
    "Webservers:\n  parent: All Nodes\n",
    "name: A\nvariables:\n  x: {{ foo }}\n",
    "name: {{ foo }}\n",
    "name: A\nvariables:\n  x: %{facts.x}\n",
    "name: @web\n",
    "name: `web`\n",
    "name: A\nvariables: !ruby/hash {a: 1}\n",
    "name: :web\n",
    "name:A\nparent: B\n",
    "name:A\n",
    "name: A\nparent:B\n",
    "name: A\nclasses:\n  ntp:\n    x:1\n",
    "name: A\nvariables: {a: *}\n",
    "name: *web\n",
    "name: A\ndescription: & more\n",
    "name: A\nenvironment_trumps: yes\n",
    "name: A\nenvironment_trumps: \"true\"\n",
    "name: A\nrule: os.family =~ Deb\n",
    "name: A\nrule: os.family == Debian\n",
    "name: A\nrule: a = 1 && b = 2\n",
    "name: A\nrule: a = 1 || b = 2\n",
    "name: A\nrule: \"'web' in tags\"\n",
    "name: A\nrule: tags contains web\n",
    "name: A\nrule: '! a = 1'\n",
    "name: A\nrule: a is b\n",
    "name: A\nrule: a in [b, c]\n",
    "name: A\nrule: a <> b\n",
    "name: A\nrule: name =~ /web/\n",
    "name: A\nrule: a = 1 AND b = 2\n",
    "name: A\nrule: a =>5\n",
    "name: A\nrule: a => 5\n",
    "name: A\nrule: $facts.os.family = “Debian”\n",
    "name: A\nrule: os.family = “Red Hat”\n",
    "name: A\nrule: $trusted.certname = x\n",
    "name: A\nrule: \"%{trusted.extensions.pp_role} = x\"\n",
    "name: A\nrule: [\"=\", [\"fact\", \"$::os\", \"family\"], \"x\"]\n",
    "name: A\nrule: os.family = Red Hat\n",
    "name: A\nrule: true\n",
    "name: A\nrule: [name, =, x]\n",
    "name: A\nrule: {and: [x]}\n",
    "name: A\nrule: [and, a = 1, b = 2]\n",
    "name: A\nrule: [[\"=\", \"name\", \"x\"]]\n",
    "name: A\nrule: [\"=\", \"os.family\", \"x\"]\n",
    "name: A\nrule: [\"=\", [\"os\", \"family\"], \"x\"]\n",
    "name: A\nrule: [\"=\", \"name\", 5]\n",
    "name: A\nrule: [\"in\", \"name\", [a]]\n",
    "name: A\nrule: os.family = “Debian”\n",
    "name: A\nparent:\u{a0}B\n",
    "name: A\nclasses:\n\u{a0}\u{a0}ntp: {}\n",
    "name: A\nx: &x {a: 1}\nclasses:\n  <<: *x\n",
    "name: A\n--\nname: B\n",
    "name: A\nname: B\n",
    "name: A\nclasses: *base\n",
    "%name: A\n",
    "name: !web\n",
    "name: A\ndescription: | text\n",
    "name: A\nrule: > 5\n",
    "name: A\npinned: -a\n",
    "name: A\npinned: - a\n",
    "name: A\npinned:\n  -a\n  -b\n",
    "name: A\npinned: web1\n",
    "name: A\ndescription: ? what\n",
    "{\"name\": \"A\"\n \"parent\": \"B\"}\n",
    "{name: \"A\", // c\n parent: B}\n",
    "name: \"C:\\Web\"\n",
    "name: \"\\ud83d\"\n",
    "name: \"\\ud83d\\ude00\"\n",
    "name: A\nclasses:\n- ntp\n  apt: {}\n",
    "name = A\n",
    "name => A\n",
    "name: \"A\" B\n",
    "name: [a] b\n",
    "name: A\n: B\n",
    "name: A\nenvironment: My-Env\n",
    "name: A\nclasses: {Ntp: {}}\n",
    "name: A\nenvironment_trump: true\n",
    "name: A\ndescripton: true\n",
    "name: A\nvariables: {t: 2024-01-31}\n",
    "name: 5\n",
    "name: A\nrule: name ~ webs?\n",
    "name: A\nrule: [\"=\", \"name\", \"x\" \"y\"]\n",
    "name: A\npinned: ['web*']\n",
    "name: A\npinned: ['']\n",
    "name: A\npinned: [Web1.example.com, ' web2']\n",
    "name: A\npinned: ['^web\\d', https://web1]\n",
    "name: A\nrule: name = Web1\n",
    "name: A\nrule: [\"=\", [\"trusted\", \"certname\"], \"Web1\"]\n",
    "name: A\nvariables: {a: 1, log-level: 2, Role: 3, \"0\": 4}\n",
    "name: A\ndescription: #1 in the world\n",
    "name: A\nparent: #42\n",
    "name: A\nvariables:\n  channel: #ops\n  list:\n    - #ops\n    - # a comment\n",
    "name: A\nvariables: # as everywhere\n  channel:   # none\nclasses: #these\n  ntp:\n",
    "name: A\n# clade: ignore never-match\npinned: ['']\n",
    "name: A\n# clade: ignore suspicious-rule, everything\npinned: ['']\n",
];

#[test]
fn each_mistake_is_answered_with_its_place_and_what_to_do() {
    let mut shown = String::new();
    for text in MISTAKES {
        shown.push_str(text.trim_end());
        shown.push('\n');
        for found in checked(&[("groups/g.yaml", text)]).diagnostics {
            let start = found.place.span.start;
            let (kind, message) = (found.kind, &found.message);
            let _infallible =
                writeln!(shown, "=> {}:{} {kind}: {message}", start.line, start.column);
            if let Some(help) = &found.help {
                let _infallible = writeln!(shown, "   help: {help}");
            }
            for place in related(&found) {
                let _infallible =
                    writeln!(shown, "   {}", place.trim_start_matches("groups/g.yaml:"));
            }
        }
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_file_or_test_of_a_node_names_one_that_there_can_be() {
    for (path, text, expected) in [
        (
            "tests/t.yaml",
            "- {name: t, node: Web1, expect: {groups: []}}\n",
            "tests/t.yaml:1:19 suspicious-value certnames are lowercase, so no node has the name `Web1` // write `web1`",
        ),
        (
            "nodes/Web1.yaml",
            "variables: {a: 1}\n",
            "nodes/Web1.yaml:1:1 suspicious-value certnames are lowercase, so no node has the name `Web1` // write `web1`",
        ),
        (
            "nodes/a.yaml",
            "name: ''\nvariables: {a: 1}\n",
            "nodes/a.yaml:1:7 suspicious-value no node has an empty certname // write the certname of the node",
        ),
        (
            "nodes/a.yaml",
            "variables: {a: 1}\nname: web*\n",
            "nodes/a.yaml:2:7 suspicious-value this is the certname of one node, so `web*` is not a pattern // for several nodes, write a group with a rule: `name ~ \"^web\"`",
        ),
    ] {
        let group = ("groups/g.yaml", "name: G\n");
        assert_eq!(findings(&[group, (path, text)]), [expected], "{path}");
    }
}
