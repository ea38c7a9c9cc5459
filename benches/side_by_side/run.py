#!/usr/bin/env python3
"""Asks Clade, and what a site would use instead, about the same nodes of the same estate, and compares answers and times.

`just side-by-side` builds the program and runs this. All that is asked about a node is asked in turn, before the next
node, so that a machine that becomes slower does so for all.
"""

import argparse
import http.client
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

import enc
import estate
import rego

HERE = Path(__file__).resolve().parent

# How often groups are read where it is measured without the start of a process.
READINGS = 5


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{command[:3]} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


class Site:
    """The estate in a git repository, as Hiera data, and the facts in files as Puppet Server keeps them."""

    def __init__(self, directory, real_facts):
        self.directory = Path(directory)
        self.facts, self.real = estate.facts(real_facts)
        self.groups = estate.groups(sorted(self.facts))
        self.repo = self.directory / "repo"
        self.facts_dir = self.directory / "facts"
        self.facts_dir.mkdir()
        (self.repo / "groups").mkdir(parents=True)
        for number, group in enumerate(self.groups):
            (self.repo / "groups" / f"group-{number}.yaml").write_text(yaml.safe_dump(group, sort_keys=False))
        for node, values in self.facts.items():
            text = json.dumps({"name": node, "values": values})
            (self.facts_dir / f"{node}.json").write_text(text)
        git = ["git", "-C", str(self.repo), "-c", "user.name=a", "-c", "user.email=a@example.com"]
        run(["git", "init", "-q", "-b", "main", str(self.repo)])
        run([*git, "add", "."])
        run([*git, "commit", "-q", "-m", "Begin"])
        self.environment = {
            **os.environ,
            "GROUPS_DIR": str(self.repo / "groups"),
            "FACTS_DIR": str(self.facts_dir),
        }
        self.write_hiera()

    def write_hiera(self):
        """Writes what Hiera's levels can say there, and the rest into a file for each node."""
        base = self.directory / "environments" / "production"
        levels, rest = {}, {node: [] for node in self.facts}
        groups = {it["name"]: it for it in self.groups}
        known = {node: {} for node in self.facts}
        for group in self.groups:
            operator, *arguments = group.get("rule", ["pinned"])
            of = [level for level, path in estate.LEVELS.items() if operator == "=" and arguments[0] == path]
            if of and "parent" not in group:
                levels.setdefault((of[0], arguments[1]), []).extend(group["classes"])
                continue
            for node, facts in self.facts.items():
                if enc.matches(group, groups, node, facts, known[node]):
                    rest[node].extend(group["classes"])
        files = {f"{level}/{value}.yaml": classes for (level, value), classes in levels.items()}
        files |= {f"nodes/{node}.yaml": classes for node, classes in rest.items()}
        for name, classes in files.items():
            path = base / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump({"classes": classes}))
        self.level_groups = sum(1 for it in self.groups if "parent" not in it and it.get("rule", [""])[0] == "=")
        paths = ["nodes/%{facts.clientcert}.yaml"]
        paths += [f"{level}/%{{facts.{'.'.join(path[1:])}}}.yaml" for level, path in estate.LEVELS.items()]
        hiera = {
            "version": 5,
            "defaults": {"datadir": "data", "data_hash": "yaml_data"},
            "hierarchy": [{"name": "all", "paths": paths}],
        }
        (base / "hiera.yaml").write_text(yaml.safe_dump(hiera))


class Daemon:
    def __init__(self, clade, site):
        self.log = open(site.directory / "daemon.log", "w+", encoding="utf-8")
        command = [clade, "serve", "--repo", str(site.repo), "--listen", "127.0.0.1:0"]
        self.child = subprocess.Popen(command, stderr=self.log, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            text = (site.directory / "daemon.log").read_text()
            if "listening on http://" in text:
                break
            if self.child.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the daemon did not start: {text}")
            time.sleep(0.05)
        self.address = text.split("listening on http://")[1].split()[0]
        self.connection = http.client.HTTPConnection(self.address)

    def ask(self, node, body):
        self.connection.request("POST", f"/v1/classified/nodes/{node}", body)
        response = self.connection.getresponse()
        text = response.read()
        if response.status != 200:
            sys.exit(f"the daemon answered {response.status}: {text[:500]}")
        return text

    def computed(self):
        """The seconds that all threads have computed."""
        tasks = Path(f"/proc/{self.child.pid}/task").glob("*/schedstat")
        return sum(int(it.read_text().split()[0]) for it in tasks) / 1e9

    def stop(self):
        self.child.terminate()
        self.child.wait()
        self.log.close()


def computed_by_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(times, name, ask, computed):
    """Notes how long asking took, and how long the processors computed for it."""
    before, began = computed(), time.perf_counter()
    answer = ask()
    elapsed = time.perf_counter() - began
    waited, worked = times.setdefault(name, ([], []))
    waited.append(elapsed * 1000)
    worked.append((computed() - before) * 1000)
    return answer


def same(name, node, expected, classes):
    """Stops at the first node that gets other classes."""
    if classes != expected:
        expected, classes = set(map(str, expected)), set(map(str, classes))
        sys.exit(f"{name} gives {node} other classes: lacks {expected - classes}, adds {classes - expected}")


def ask_all(site, clade, lookups):
    times = {}
    daemon = Daemon(clade, site)
    enc_flags = ["--facts-dir", str(site.facts_dir), "--cache-dir", str(site.directory / "cache")]
    enc_flags += ["--signed-dir", str(site.directory), "--puppet-conf", os.devnull]
    bodies = {node: json.dumps({"fact": it, "trusted": {"certname": node}}) for node, it in site.facts.items()}
    # The first request renders what groups inherit, and opens the connection.
    daemon.ask(*next(iter(bodies.items())))
    try:
        for number, node in enumerate(site.facts):
            program = lambda name, command: timed(
                times, name, lambda: run(command, env=site.environment).stdout, computed_by_children
            )
            answer = timed(times, "clade serve, over HTTP", lambda: daemon.ask(node, bodies[node]), daemon.computed)
            expected = json.loads(answer)["classes"]
            if not expected:
                sys.exit(f"{node} has no classes: nothing would be compared")
            text = program("clade enc, asks the daemon", [clade, "enc", node, "--server", f"http://{daemon.address}", *enc_flags])
            same("clade enc", node, expected, json.loads(text)["classes"])
            text = program("clade enc --repo, reads the groups", [clade, "enc", node, "--repo", str(site.repo), *enc_flags])
            same("clade enc --repo", node, expected, json.loads(text)["classes"])
            text = program("Python ENC", [sys.executable, str(HERE / "enc.py"), node])
            same("enc.py", node, expected, yaml.load(text, enc.Loader)["classes"])
            text = program("Ruby ENC", ["ruby", str(HERE / "enc.rb"), node])
            same("enc.rb", node, expected, yaml.load(text, enc.Loader)["classes"])
            if lookups and number % max(1, len(site.facts) // lookups) == 0:
                text = program("puppet lookup classes", lookup(site, node))
                same("puppet lookup", node, set(expected), set(json.loads(text)))
    finally:
        daemon.stop()
    return times


def lookup(site, node):
    return [
        "puppet", "lookup", "classes", "--merge", "unique", "--render-as", "json", "--node", node,
        "--facts", str(site.facts_dir / f"{node}.facts.json"),
        "--environmentpath", str(site.directory / "environments"), "--environment", "production",
        "--confdir", str(site.directory / "conf"), "--vardir", str(site.directory / "var"),
    ]  # fmt: skip


def within(site, command, expected):
    """Asks about all nodes in one process; returns the computing times of reading groups, and of each node after that."""
    done = run([*command, *site.facts], env=site.environment)
    for (node, classes), line in zip(expected.items(), done.stdout.splitlines(), strict=True):
        same(command[-1], node, classes, json.loads(line)["classes"])
    return json.loads(done.stderr)


def cell(times):
    if not times:
        return "–"
    middle, least, most = statistics.median(times), min(times), max(times)
    digits = 2 if middle < 10 else 0
    return f"{middle:.{digits}f} ({least:.{digits}f}–{most:.{digits}f})"


def row(name, what, waited, worked):
    print(f"| {name} | {what} | {cell(waited)} | {cell(worked)} | {len(worked)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clade", default=str(HERE.parent.parent / "target" / "release" / "clade"))
    parser.add_argument("--facts", help="a directory with real facts, VERSION/*.facts; without it they are made up")
    parser.add_argument("--lookups", type=int, default=40, help="how many nodes `puppet lookup` is asked about")
    parser.add_argument("--rego", help="the program of benches/side_by_side/rego, where it was built")
    arguments = parser.parse_args()
    lookups = arguments.lookups if shutil.which("puppet") else 0
    with tempfile.TemporaryDirectory() as directory:
        site = Site(directory, arguments.facts)
        for node, values in site.facts.items():
            # `puppet lookup` reads facts without what Puppet Server writes around them.
            (site.facts_dir / f"{node}.facts.json").write_text(json.dumps(values))
        before = os.getloadavg()[0]
        times = ask_all(site, arguments.clade, lookups)
        groups = enc.load_groups(site.repo / "groups")
        expected = {node: enc.classify(groups, node, it)["classes"] for node, it in site.facts.items()}
        inside = {
            "Python ENC": lambda: within(site, [sys.executable, str(HERE / "enc.py")], expected),
            "Ruby ENC": lambda: within(site, ["ruby", str(HERE / "enc.rb")], expected),
        }
        if arguments.rego:
            inside["Rego, by regorus"] = lambda: rego.measure(site, arguments.rego, expected, run, same)
        computed = {name: [] for name in inside}
        for _ in range(READINGS):
            for name, measure in inside.items():
                computed[name].append(measure())
        size = statistics.median(it.stat().st_size for it in site.facts_dir.glob("*.facts.json")) / 1024
        classes = [len(it) for it in expected.values()]
        print(
            f"{len(site.groups)} groups, of which Hiera has levels for {site.level_groups}; {len(site.facts)} nodes with"
            f" {f'{site.real} sets of real' if site.real else 'made-up'} facts in turn, {size:.0f} KB at the median;"
            f" {min(classes)} to {max(classes)} classes, {statistics.median(classes):.0f} at the median;"
            f" load {before:.1f} to {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, PyYAML {yaml.__version__}"
            f" ({enc.Loader.__name__}), {run(['ruby', '--version']).stdout.split(' (')[0]}"
        )
        print("\n| what | asked | ms, median (range) | of computing | times |\n|---|---|---|---|---|")
        for name, (waited, worked) in times.items():
            row(name, "a node" if "HTTP" in name else "a node, by a process of its own", waited, worked)
        for name, rounds in computed.items():
            row(name, "reading all groups, without the start of the process", [], [it[0] for it in rounds])
            row(name, "a node, with the groups in memory", [], [time for it in rounds for time in it[1:]])


if __name__ == "__main__":
    main()
