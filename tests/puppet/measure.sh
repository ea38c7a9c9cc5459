#!/usr/bin/env bash
# Measures `clade enc` as Puppet Server runs it, from start to exit, beside curl posting the same body.
#
# usage: measure.sh [RUNS]     needs curl, git, python3 and a release build
set -euo pipefail
cd "$(dirname "$0")/../.."
clade=$PWD/target/release/clade runs=${1:-60}
[ -x "$clade" ] || { echo "build it first: cargo build --release" >&2; exit 2; }
home=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null; rm -rf "$home"' EXIT
mkdir -p "$home/groups/groups" "$home/facts"
cat >"$home/groups/groups/all.yaml" <<'YAML'
name: Debian
rule: os.family = Debian
classes: {apt: {}, ntp: {servers: [a.example, b.example]}}
YAML
git -C "$home/groups" init -q -b main .
git -C "$home/groups" add .
git -C "$home/groups" -c user.name=m -c user.email=m@example.com commit -qm groups
# 24 KB of facts, as an agent of today sends them.
python3 - "$home" <<'PY'
import json, sys
facts = {"os": {"family": "Debian"}, **{f"fact_{i}": {"a": "x" * 40, "b": [1, 2, 3], "c": {"d": "y" * 60}} for i in range(155)}}
json.dump({"name": "web1", "values": facts}, open(sys.argv[1] + "/facts/web1.json", "w"))
json.dump({"fact": facts, "trusted": {"certname": "web1"}}, open(sys.argv[1] + "/body.json", "w"))
PY
echo "vardir = $home" >"$home/puppet.conf"
"$clade" serve --repo "$home/groups" --listen 127.0.0.1:0 2>"$home/log" &
daemon=$!
until address=$(sed -n 's|.*listening on \(http://[0-9.:]*\).*|\1|p' "$home/log" | tr -d '\033' | head -1) && [ -n "$address" ]; do sleep 0.05; done
until curl -sf "$address/readyz" >/dev/null; do sleep 0.05; done
python3 - "$runs" "$clade" "$address" "$home" <<'PY'
import socket, statistics, subprocess, sys, time
runs, clade, address, home = int(sys.argv[1]), *sys.argv[2:]
enc = [clade, "enc", "web1", "--facts-dir", home + "/facts", "--puppet-conf", home + "/puppet.conf"]
def median(command, status=0):
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        times.append((time.perf_counter() - began) * 1000)
        assert done.returncode == status, done
    return statistics.median(times)
ours = median(enc + ["--server", address])
curl = median(["curl", "-sf", "--data-binary", "@" + home + "/body.json", address + "/enc/web1"])
# A listener that never accepts: once its queue is full, connecting takes for ever.
deaf = socket.socket()
deaf.bind(("127.0.0.1", 0))
deaf.listen(0)
queue = [socket.socket() for _ in range(3)]
for waiting in queue:
    waiting.setblocking(False)
    waiting.connect_ex(deaf.getsockname())
stale = median(enc + ["--server", f"http://127.0.0.1:{deaf.getsockname()[1]}", "--connect-timeout", "200ms"])
refused = median(enc + ["--server", "http://127.0.0.1:1"])
print(f"clade enc {ours:.1f} ms, curl {curl:.1f} ms ({ours / curl:.2f} times), medians of {runs}")
print(f"last good answer: {stale - 200:.1f} ms after a connection time-out of 200 ms; {refused:.1f} ms when refused")
PY
