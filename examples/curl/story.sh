#!/usr/bin/env bash
# A workload exchanges its token, creates a group, binds a role, lists groups, and reads a typed error. See README.md.
set -euo pipefail

# Calls the API: the path, then options of curl. A header from a pipe keeps the token out of the list of processes.
call() {
  local path=$1
  shift
  curl -sS --fail-with-body -H @<(printf 'Authorization: Bearer %s' "$token") -H 'Content-Type: application/json' "$@" \
    "$ARBOR_API$path"
}

# The workload's own token is the bearer of the exchange.
token=$(<"$TOKEN_FILE")
token=$(call /sts/exchange -G --data-urlencode "aud=$ARBOR_API" --data-urlencode "identity=$IDENTITY" | jq -er .token)
echo "exchanged a token"

group=$(jq -n '{name: "team of curl", description: "made by an example"}' | call "/iam/v2/groups/$GROUP" --data @- | jq -er .uid)
echo "created $group"

role=$(call "/iam/v2/roles?name=viewer" | jq -er '.roles[0].uid')
binding=$(jq -n --arg identity "$IDENTITY" --arg role "$role" '{identityUid: $identity, roleUid: $role}' |
  call "/iam/v2/roleBindings/$group" --data @- | jq -er .uid)
echo "bound the role viewer: $binding"

# A list has pages: the last one has no nextPageToken.
page=""
while
  response=$(call /iam/v2/groups -G --data-urlencode "uidp.children_of=$GROUP" --data-urlencode "order_by=name" \
    --data-urlencode "page_size=50" --data-urlencode "page_token=$page")
  jq -r '.groups[].name' <<<"$response"
  page=$(jq -r '.nextPageToken // ""' <<<"$response")
  [[ -n $page ]]
do :; done

# 22 is curl's exit code for a response that is an error.
status=0
response=$(call "/iam/v2/groups/$GROUP" --data '{"name": "Not/Allowed"}' 2>/dev/null) || status=$?
if ((status == 22)); then
  jq -r '(.details[] | select(.reason) | .reason) + ": " + ([.details[].fieldViolations[]?.description] | join(", "))' <<<"$response"
else
  echo "an error of the API was expected, curl ended with $status" >&2
  exit 1
fi
