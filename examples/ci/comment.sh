#!/bin/sh
# Posts a report as a comment on a pull request, or updates the one it posted before.
#
# usage: comment.sh github|gitlab REPORT
#
# The first line of REPORT is the marker that identifies the comment, `<!-- clade-diff -->` or another that
# starts with `<!-- clade-`; a report without one is refused. Needs curl and jq.
#
# github (also Gitea and Forgejo): GITHUB_API_URL, GITHUB_REPOSITORY, PULL_REQUEST, GITHUB_TOKEN
# gitlab: CI_API_V4_URL, CI_PROJECT_ID, CI_MERGE_REQUEST_IID, CLADE_GITLAB_TOKEN (scope `api`)
set -eu

forge=${1:?usage: comment.sh github|gitlab REPORT}
report=${2:?usage: comment.sh github|gitlab REPORT}

case $forge in
github)
    repository=$GITHUB_API_URL/repos/$GITHUB_REPOSITORY
    comments=$repository/issues/$PULL_REQUEST/comments
    comment=$repository/issues/comments
    update=PATCH
    header="Authorization: Bearer $GITHUB_TOKEN"
    ;;
gitlab)
    comments=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes
    comment=$comments
    update=PUT
    header="PRIVATE-TOKEN: $CLADE_GITLAB_TOKEN"
    ;;
*)
    echo "comment.sh: unknown forge \`$forge\`" >&2
    exit 2
    ;;
esac

# Every comment starts with an empty marker, and comments of other jobs with markers of theirs.
marker=$(head -n 1 "$report")
case $marker in
'<!-- clade-'*' -->') ;;
*)
    echo "comment.sh: \`$report\` has no marker: expected a first line such as <!-- clade-diff -->" >&2
    exit 2
    ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jq -n --rawfile body "$report" '{body: $body}' >"$work/body"
# The token goes through a file: every user of the machine can read the arguments of a process.
printf 'header = "%s"\n' "$header" >"$work/curl"

# call METHOD URL [FILE]: the answer is in $work/answer
call() {
    curl --silent --show-error --fail --retry 3 --max-time 60 --config "$work/curl" \
        --header 'Content-Type: application/json' --request "$1" ${3:+--data-binary "@$3"} \
        --output "$work/answer" "$2"
}

# Another user may have quoted the marker: the forge refuses that update, and the loop tries the next comment.
# Gitea and Forgejo have no pages of comments: they answer with all of them each time.
page=1
previous=
while :; do
    call GET "$comments?per_page=100&page=$page"
    first=$(jq -r '.[0].id // empty' "$work/answer")
    [ "$page" -eq 1 ] || [ "$first" != "$previous" ] || break
    previous=$first
    for id in $(jq -r --arg marker "$marker" \
        '.[] | select(.body // "" | startswith($marker)) | .id' "$work/answer"); do
        if call "$update" "$comment/$id" "$work/body" 2>"$work/refused"; then
            echo "updated comment $id"
            exit 0
        fi
    done
    [ "$(jq length "$work/answer")" -eq 100 ] || break
    page=$((page + 1))
done
call POST "$comments" "$work/body"
echo "posted comment $(jq -r .id "$work/answer")"
