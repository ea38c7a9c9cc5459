#!/usr/bin/env python3
"""An external node classifier: prints the classes of a node, from groups in YAML files.

Usage: enc.py NODE, with GROUPS_DIR and FACTS_DIR in the environment. With the names of more nodes it
prints one JSON document a line, and on stderr how many milliseconds of computing reading and each node took.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import yaml

# The reader that is written in C, where PyYAML was built with it.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_groups(directory):
    groups = {}
    for path in sorted(Path(directory).rglob("*.yaml")):
        with path.open("rb") as file:
            group = yaml.load(file, Loader)
        groups[group["name"]] = group
    return groups


def load_facts(directory, node):
    with (Path(directory) / f"{node}.json").open("rb") as file:
        return json.load(file)["values"]


def lookup(node, facts, path):
    if path == "name":
        return node
    value = facts
    for key in path[1:]:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def holds(rule, node, facts):
    operator, *arguments = rule
    if operator == "and":
        return all(holds(it, node, facts) for it in arguments)
    if operator == "or":
        return any(holds(it, node, facts) for it in arguments)
    if operator == "not":
        return not holds(arguments[0], node, facts)
    path, expected = arguments
    value = lookup(node, facts, path)
    if value is None:
        return False
    if operator == "=":
        return value == expected
    if operator == "~":
        return re.search(expected, value) is not None
    left, right = number(value), number(expected)
    if left is None or right is None:
        return False
    return {">": left > right, ">=": left >= right, "<": left < right, "<=": left <= right}[operator]


def matches(group, groups, node, facts, known):
    """Whether a node is in a group, and so in all groups above it."""
    name = group["name"]
    if name not in known:
        if node in group.get("pinned", ()):
            known[name] = True
        else:
            rule, parent = group.get("rule"), group.get("parent")
            known[name] = (
                rule is not None
                and holds(rule, node, facts)
                and (parent is None or matches(groups[parent], groups, node, facts, known))
            )
    return known[name]


def classify(groups, node, facts):
    classes, known = {}, {}

    def add(group):
        # What a group says wins over what it inherits.
        if group.get("parent") is not None:
            add(groups[group["parent"]])
        for name, parameters in (group.get("classes") or {}).items():
            classes.setdefault(name, {}).update(parameters or {})

    for group in groups.values():
        if matches(group, groups, node, facts, known):
            add(group)
    return {"classes": classes}


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: enc.py NODE")
    began = time.process_time()
    groups = load_groups(os.environ["GROUPS_DIR"])
    nodes = sys.argv[1:]
    if len(nodes) == 1:
        facts = load_facts(os.environ["FACTS_DIR"], nodes[0])
        yaml.safe_dump(classify(groups, nodes[0], facts), sys.stdout, sort_keys=True)
        return
    times = [(time.process_time() - began) * 1000]
    for node in nodes:
        began = time.process_time()
        answer = classify(groups, node, load_facts(os.environ["FACTS_DIR"], node))
        times.append((time.process_time() - began) * 1000)
        print(json.dumps(answer))
    print(json.dumps(times), file=sys.stderr)


if __name__ == "__main__":
    main()
