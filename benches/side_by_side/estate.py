"""The estate and the nodes that all are asked about, from a seed."""

import copy
import glob
import json
import random
from pathlib import Path

GROUPS = 1000
NODES = 200
ROLES = 60
DATACENTERS = 4
FAMILIES = ["Debian", "RedHat", "Suse", "windows"]

ROLE = ["fact", "role"]
DATACENTER = ["fact", "datacenter"]
FAMILY = ["fact", "os", "family"]

# What Hiera's hierarchy has a level for: the name of the level and the path of the fact.
LEVELS = {"role": ROLE, "datacenter": DATACENTER, "family": FAMILY}


def equal(path, value):
    return ["=", path, value]


def rule(rng):
    """As sites write them: most ask for a role, a place or a system, some for names and numbers."""
    role = equal(ROLE, f"role{rng.randrange(ROLES)}")
    place = equal(DATACENTER, f"dc{rng.randrange(DATACENTERS)}")
    family = equal(FAMILY, rng.choice(FAMILIES))
    kind = rng.random()
    if kind < 0.25:
        return role
    if kind < 0.30:
        return rng.choice([place, family])
    if kind < 0.45:
        return ["and", role, place]
    if kind < 0.55:
        return ["and", role, ["not", family]]
    if kind < 0.65:
        return ["or", ["and", role, family], ["and", place, equal(ROLE, f"role{rng.randrange(ROLES)}")]]
    if kind < 0.80:
        return ["~", "name", f"^role{rng.randrange(ROLES)}-[0-9]+\\.dc{rng.randrange(DATACENTERS)}\\."]
    if kind < 0.88:
        return ["and", role, [">=", ["fact", "processors", "count"], rng.choice(["2", "4"])]]
    if kind < 0.94:
        return ["and", family, ["~", ["fact", "os", "release", "major"], "^(1|20)"], role]
    return None


def groups(names, seed=1):
    rng = random.Random(seed)
    made = []
    for number in range(GROUPS):
        group = {"name": f"Group {number}"}
        parent = rng.choice(made) if made and rng.random() < 0.4 else None
        asked = rule(rng)
        # No deeper than four, and pinned nodes neither below nor above rules.
        if parent and asked and parent["depth"] < 4 and "pinned" not in parent:
            group["parent"] = parent["name"]
        group["depth"] = parent["depth"] + 1 if "parent" in group else 1
        if asked is None:
            group["pinned"] = sorted(rng.sample(names, rng.randrange(1, 20)))
        else:
            group["rule"] = asked
        group["classes"] = {
            f"profile::group_{number}::class_{it}": {
                f"parameter_{key}": rng.choice([number, f"value {number}", True, ["a", f"b{number}"]])
                for key in range(rng.randrange(3))
            }
            for it in range(rng.randrange(1, 4))
        }
        made.append(group)
    for group in made:
        del group["depth"]
    # Nothing is shared, which YAML would write as an alias.
    return json.loads(json.dumps(made))


def made_up(rng):
    """Facts where there is no directory of real ones: with as many values, and less truth."""
    family = rng.choice(FAMILIES)
    text = lambda length: "".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))
    mounts = {f"/srv/{it}": {"device": text(12), "size_bytes": rng.randrange(1 << 40)} for it in range(30)}
    return {
        "os": {"family": family, "name": family, "release": {"major": str(rng.randrange(7, 23))}},
        "kernel": "windows" if family == "windows" else "Linux",
        "processors": {"count": rng.choice([1, 2, 4, 8]), "models": [text(40)] * 4},
        "mountpoints": mounts,
        "ssh": {it: {"key": text(400)} for it in ("rsa", "ecdsa", "ed25519")},
    }


def facts(directory, seed=2):
    """Returns the facts of each node by its name: real ones in turn, with the role and the place of the node."""
    rng = random.Random(seed)
    files = sorted(glob.glob(f"{directory}/*/*.facts")) if directory else []
    sets = [json.loads(Path(it).read_text()) for it in files] or [made_up(rng) for _ in range(50)]
    nodes = {}
    for number in range(NODES):
        role, place = f"role{rng.randrange(ROLES)}", f"dc{rng.randrange(DATACENTERS)}"
        name = f"{role}-{number}.{place}.example.com"
        values = copy.deepcopy(sets[number % len(sets)])
        hostname, domain = name.split(".", 1)
        # `puppet lookup` wants all four of a node's names.
        values.update(clientcert=name, fqdn=name, hostname=hostname, domain=domain)
        values.update(role=role, datacenter=place)
        nodes[name] = values
    return nodes, len(files)
