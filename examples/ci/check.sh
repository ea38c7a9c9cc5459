#!/bin/sh
# Checks a change of the group repository: validation, classification tests, and which nodes it moves.
#
# usage: check.sh github|gitlab|plain BASE
#
# BASE is the revision to compare the change with. The script writes clade-tests.xml (JUnit),
# clade-diff.md (the comment) and, for GitLab, clade-quality.json (code quality).
# The exit status is 0 if the change may be merged, 1 if not, 2 if the check could not run.
#
# CLADE_DIR    the directory of the groups, default .
# CLADE_NODES  the source of nodes, default "--facts facts"; also "--server URL", "--puppetdb URL"
set -eu

if [ -z "${1:-}" ] || [ -z "${2:-}" ]; then
    echo 'usage: check.sh github|gitlab|plain BASE' >&2
    exit 2
fi
forge=$1
base=$2
dir=${CLADE_DIR:-.}
nodes=${CLADE_NODES:---facts facts}

status=0
compared=0
worse() { [ "$1" -le "$status" ] || status=$1; }

case $forge in
github) clade validate "$dir" --format github || worse $? ;;
gitlab)
    clade validate "$dir" || worse $?
    clade validate "$dir" --format gitlab >clade-quality.json || worse $?
    ;;
plain) clade validate "$dir" || worse $? ;;
*)
    echo "check.sh: unknown forge \`$forge\`" >&2
    exit 2
    ;;
esac
if [ "$status" -ne 0 ]; then
    {
        echo '<!-- clade-diff -->'
        echo '### Classification: the change is not valid'
        echo
        echo 'The nodes cannot be compared; the log of the pipeline has the findings.'
    } >clade-diff.md
    exit "$status"
fi

clade test "$dir" || worse $?
clade test "$dir" --format junit >clade-tests.xml || worse $?

# Several words: the source of nodes.
# shellcheck disable=SC2086
clade diff "$base" --repo "$dir" $nodes --format markdown >clade-diff.md || compared=$?
if [ "$compared" -eq 0 ] || [ -s clade-diff.md ]; then
    worse "$compared"
    exit "$status"
fi

# The base of a change that mends a broken branch, or that brings the first groups, classifies no node.
found=0
findings=$(clade validate "$dir" --rev "$base" 2>&1) || found=$?
if [ "$found" -eq 1 ]; then
    printf '%s\n' "$findings" >&2
    {
        echo '<!-- clade-diff -->'
        echo '### Classification: the base is not valid'
        echo
        echo "What differs cannot be shown: \`$base\` is not valid, so it classifies no node. The log of the"
        echo 'pipeline has its findings. After the merge every node gets what this change says.'
    } >clade-diff.md
else
    worse "$compared"
    {
        echo '<!-- clade-diff -->'
        echo '### Classification: not compared'
        echo
        echo 'The comparison could not run; the log of the pipeline says why.'
    } >clade-diff.md
fi
exit "$status"
