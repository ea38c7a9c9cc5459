"""The estate as a Rego policy, as a site with Open Policy Agent would write it: a rule for each group."""

import json


def path(names):
    return "input.name" if names == "name" else "input.facts" + "".join(f"[{json.dumps(it)}]" for it in names[1:])


class Policy:
    def __init__(self, groups):
        self.lines = ["package classes", "", "import rego.v1", ""]
        self.helpers = 0
        for number, group in enumerate(groups):
            self.group(number, group, {it["name"]: at for at, it in enumerate(groups)})

    def group(self, number, group, numbers):
        if "pinned" in group:
            names = json.dumps(group["pinned"])
            self.lines.append(f"group_{number} if input.name in {names}")
        else:
            conditions = self.conditions(group["rule"])
            if "parent" in group:
                conditions.insert(0, f"group_{numbers[group['parent']]}")
            self.lines.append(f"group_{number} if {{ {'; '.join(conditions)} }}")
        self.lines.append(f"groups contains {json.dumps(group['name'])} if group_{number}")

    def conditions(self, rule):
        operator, *arguments = rule
        if operator == "and":
            return [condition for it in arguments for condition in self.conditions(it)]
        if operator == "or":
            return [self.helper([self.conditions(it) for it in arguments])]
        if operator == "not":
            return [f"not {self.helper([self.conditions(arguments[0])])}"]
        value, expected = path(arguments[0]), json.dumps(arguments[1])
        if operator == "=":
            return [f"{value} == {expected}"]
        if operator == "~":
            return [f"regex.match({expected}, {value})"]
        return [f"to_number({value}) {operator} {arguments[1]}"]

    def helper(self, bodies):
        name = f"any_{self.helpers}"
        self.helpers += 1
        self.lines.extend(f"{name} if {{ {'; '.join(it)} }}" for it in bodies)
        return name


def measure(site, program, expected, run, same):
    """Evaluates the policy for all nodes in one process; returns the computing times of reading it, and of each node."""
    policy = site.directory / "policy.rego"
    policy.write_text("\n".join(Policy(site.groups).lines) + "\n")
    groups = {it["name"]: it for it in site.groups}
    inputs = site.directory / "inputs.jsonl"
    with inputs.open("w", encoding="utf-8") as file:
        for node, facts in site.facts.items():
            file.write(json.dumps({"name": node, "facts": facts}) + "\n")
    done = run([program, str(policy), str(inputs)])
    for (node, classes), line in zip(expected.items(), done.stdout.splitlines(), strict=True):
        # The policy says which groups match; what they say is looked up as for the scripts.
        matching = [groups[it] for it in json.loads(line)]
        same("regorus", node, set(classes), {name for it in matching for name in inherited(it, groups)})
    return json.loads(done.stderr)


def inherited(group, groups):
    above = inherited(groups[group["parent"]], groups) if "parent" in group else []
    return [*above, *group["classes"]]
