#!/usr/bin/env bash
# Walks through an identity and its binding to the built-in viewer role with curl,
# and cleans up in the reverse order.
#
#   BASE=http://127.0.0.1:8080 TOKEN=... GROUP=<uid of a group of yours> iam-walkthrough.sh
#
# Prints a line per step and ends with 1 at the first that does not match.
set -euo pipefail

: "${BASE:?address of the service}" "${TOKEN:?API token}" "${GROUP:?uid of a group}"
iam=/iam/v2beta1
viewer=63921b2c44617e3f2603851537be0123af4a57d7
claims='{"issuer":"https://token.actions.example","subject":"repo:example/app:ref:refs/heads/main"}'

# call METHOD PATH [BODY]: sets status and body.
call() {
  local arguments=(-sS -X "$1" -H "Authorization: Bearer $TOKEN" -w '\n%{http_code}') answer
  if (($# > 2)); then arguments+=(-H 'Content-Type: application/json' --data-binary "$3"); fi
  answer=$(curl "${arguments[@]}" "$BASE$iam$2")
  status=${answer##*$'\n'}
  body=${answer%$'\n'*}
}

# expect STEP STATUS BODY: compares what call got; times by their form alone.
expect() {
  local got
  got=$(sed -E 's/"(createTime|updateTime|lastSeenTime)":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"/"\1":"TIME"/g' <<<"$body")
  if [[ "$status $got" != "$2 $3" ]]; then
    printf 'FAILED %s\n  want: %s %s\n  got:  %s %s\n' "$1" "$2" "$3" "$status" "$got" >&2
    exit 1
  fi
  echo "ok $1"
}

# pick PATH...: a field of the body by its keys, by a parser of JSON.
pick() {
  node -e 'process.stdout.write(String(process.argv.slice(2).reduce((at, key) => at[key], JSON.parse(process.argv[1]))))' "$body" "$@"
}

call POST "/groups/$GROUP" '{"name":"demo","description":"a demo"}'
group=$(pick uid)
expect 'create a group' 200 "{\"uid\":\"$group\",\"name\":\"demo\",\"description\":\"a demo\",\"resourceLimits\":{},\"verified\":false,\"createTime\":\"TIME\",\"updateTime\":\"TIME\"}"

call POST "/identities/$group" "{\"name\":\"ci\",\"description\":\"builds\",\"claimMatch\":$claims}"
identity=$(pick uid)
expect 'create an identity' 200 "{\"uid\":\"$identity\",\"name\":\"ci\",\"description\":\"builds\",\"lastSeenTime\":\"TIME\",\"createTime\":\"TIME\",\"updateTime\":\"TIME\",\"claimMatch\":$claims}"

call GET '/roles?name=viewer'
if [[ "$status $(pick totalCount) $(pick roles 0 uid) $(pick roles 0 description)" != "200 1 $viewer Viewer Role (built-in)" ]]; then
  echo "FAILED find the viewer role: $status $body" >&2
  exit 1
fi
echo 'ok find the viewer role'

call POST "/roleBindings/$group" "{\"identityUid\":\"$identity\",\"roleUid\":\"$viewer\"}"
binding=$(pick uid)
expect 'bind the identity to it' 200 "{\"uid\":\"$binding\",\
\"identity\":{\"uid\":\"$identity\",\"name\":\"ci\",\"description\":\"builds\",\"subject\":\"repo:example/app:ref:refs/heads/main\",\"issuer\":\"https://token.actions.example\"},\
\"group\":{\"uid\":\"$group\",\"name\":\"demo\",\"description\":\"a demo\"},\
\"role\":{\"uid\":\"$viewer\",\"name\":\"viewer\",\"description\":\"Viewer Role (built-in)\"},\
\"createTime\":\"TIME\",\"managedBy\":\"MANAGED_BY_MANUAL\"}"

call DELETE "/groups/$group"
if [[ $status != 400 || $(pick details 1 violations 0 type) != RESOURCE_NOT_EMPTY ]]; then
  echo "FAILED delete what is not empty: $status $body" >&2
  exit 1
fi
echo 'ok delete what is not empty'

call DELETE "/roleBindings/$binding"
expect 'delete the binding' 200 ''
call DELETE "/identities/$identity"
expect 'delete the identity' 200 ''
call DELETE "/groups/$group"
expect 'delete the group' 200 ''
call GET "/groups/$group"
if [[ $status != 404 ]]; then
  echo "FAILED get what is gone: $status $body" >&2
  exit 1
fi
echo 'ok get what is gone'
