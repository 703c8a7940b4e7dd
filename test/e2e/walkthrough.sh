#!/usr/bin/env bash
# Walks through every call on groups of the Platform API with curl, and through
# both error bodies its specification shows, and checks status and body of each.
#
#   BASE=http://127.0.0.1:8080 TOKEN=... GROUP=<uid of a group of yours> walkthrough.sh
#
# Prints a line per step and ends with 1 at the first that does not match. What it
# makes below GROUP it deletes again. ERROR_DOMAIN: see ARBOR_ERROR_DOMAIN.
set -euo pipefail

: "${BASE:?address of the service}" "${TOKEN:?API token}" "${GROUP:?uid of a group}"
host=${BASE#*://}
domain=${ERROR_DOMAIN:-iam.${host%%[:/]*}}
groups=/iam/v2beta1/groups
rpc=type.googleapis.com/google.rpc

# call METHOD PATH [BODY]: sets status, type and body.
call() {
  local arguments=(-sS -X "$1" -H "Authorization: Bearer $TOKEN" -w '\n%{http_code} %{content_type}')
  if (($# > 2)); then arguments+=(-H 'Content-Type: application/json' --data-binary "$3"); fi
  local answer last
  answer=$(curl "${arguments[@]}" "$BASE$2")
  last=${answer##*$'\n'}
  body=${answer%$'\n'*}
  status=${last%% *}
  type=${last#* }
}

# expect STEP STATUS BODY: compares what call got; times and page tokens by their form alone.
expect() {
  local got want_type=application/json
  got=$(sed -E \
    -e 's/"(createTime|updateTime)":"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"/"\1":"TIME"/g' \
    -e 's/"nextPageToken":"[A-Za-z0-9_-]+"/"nextPageToken":"TOKEN"/' <<<"$body")
  if [[ -z $3 ]]; then want_type=; fi
  if [[ "$status $type $got" != "$2 $want_type $3" ]]; then
    printf 'FAILED %s\n  want: %s %s %s\n  got:  %s %s %s\n' "$1" "$2" "$want_type" "$3" "$status" "$type" "$got" >&2
    exit 1
  fi
  echo "ok $1"
}

# field NAME: a field of the body, by a parser of JSON.
field() {
  node -e 'process.stdout.write(String(JSON.parse(process.argv[1])[process.argv[2]]))' "$body" "$1"
}

# group UID NAME DESCRIPTION: how a group looks.
group() {
  printf '{"uid":"%s","name":"%s","description":"%s","resourceLimits":{},"verified":false,"createTime":"TIME","updateTime":"TIME"}' "$@"
}

# page TOTAL SKIPPED TOKEN [GROUP...]: how a page of a list looks.
page() {
  local total=$1 skipped=$2 token=$3 rows
  shift 3
  rows=$(IFS=,; echo "$*")
  printf '{"groups":[%s],%s"totalCount":"%s","skipped":%s}' "$rows" "${token:+\"nextPageToken\":\"TOKEN\",}" "$total" "$skipped"
}

# create NAME PARENT DESCRIPTION: makes a group; sets uid.
create() {
  call POST "$groups/$2" "{\"name\":\"$1\",\"description\":\"$3\"}"
  uid=$(field uid)
  if [[ ! $uid =~ ^"$2"/[0-9a-f]{16}$ ]]; then
    echo "FAILED create: $uid is no uid below $2" >&2
    exit 1
  fi
  expect "create $1" 200 "$(group "$uid" "$1" "$3")"
}

create walk "$GROUP" 'Größe – 50 %'
walk=$uid
create beta "$walk" second
beta=$uid
create alpha "$walk" first
alpha=$uid
create alpha "$beta" deep
deep=$uid
a=$(group "$alpha" alpha first)
b=$(group "$beta" beta second)
d=$(group "$deep" alpha deep)
below="uidp.descendants_of=$walk"
within="uidp.children_of=$walk"

call GET "$groups/$walk"
expect 'get' 200 "$(group "$walk" walk 'Größe – 50 %')"
call GET "$groups/${walk//\//%2F}"
expect 'get by an escaped uid' 200 "$(group "$walk" walk 'Größe – 50 %')"

call GET "$groups?$below&order_by=created_at"
expect 'list what lies below' 200 "$(page 3 0 '' "$b" "$a" "$d")"
call GET "$groups?$within&order_by=created_at"
expect 'list children' 200 "$(page 2 0 '' "$b" "$a")"
call GET "$groups?$within&name=alpha"
expect 'list by name' 200 "$(page 1 0 '' "$a")"
call GET "$groups?$within&order_by=name"
expect 'list in order' 200 "$(page 2 0 '' "$a" "$b")"
call GET "$groups?$within&order_by=name%20desc"
expect 'list in reverse order' 200 "$(page 2 0 '' "$b" "$a")"
call GET "$groups?$below&order_by=created_at%20desc&page_size=2"
expect 'list a page' 200 "$(page 3 0 more "$d" "$a")"
token=$(field nextPageToken)
call GET "$groups?$below&order_by=created_at%20desc&page_size=2&page_token=$token"
expect 'list the next page' 200 "$(page 3 0 '' "$b")"
call GET "$groups?$below&order_by=created_at&page_size=1&skip=1"
expect 'list from a place on' 200 "$(page 3 1 more "$a")"
call GET "$groups?$below&skip=3"
expect 'list from the end on' 200 "$(page 3 3 '')"

call PATCH "$groups/$alpha" '{"description":"changed"}'
expect 'update what is there' 200 "$(group "$alpha" alpha changed)"
call PATCH "$groups/$alpha?updateMask=name" '{"name":"gamma","description":"ignored"}'
expect 'update what the mask names' 200 "$(group "$alpha" gamma changed)"
call PATCH "$groups/$alpha?updateMask=name,description" '{"name":"delta"}'
expect 'update and clear' 200 "$(group "$alpha" delta '')"

rule='name must match ^[a-z0-9 ._-]{1,}$'
info() { printf '{"@type":"%s.ErrorInfo","reason":"%s","domain":"%s"%s}' "$rpc" "$1" "$domain" "${2:-}"; }
call POST "$groups/$walk" '{}'
expect 'create without a name' 400 "{\"code\":3,\"message\":\"Invalid argument: name: $rule\",\"details\":[$(info INVALID_ARGUMENT),\
{\"@type\":\"$rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"name\",\"description\":\"$rule: name is required\"}]}]}"
rule='cannot delete group with child groups'
call DELETE "$groups/$walk"
expect 'delete what is not empty' 400 "{\"code\":9,\"message\":\"Precondition failed: $rule\",\"details\":[$(info FAILED_PRECONDITION ',"metadata":{"groups":"2"}'),\
{\"@type\":\"$rpc.PreconditionFailure\",\"violations\":[{\"type\":\"RESOURCE_NOT_EMPTY\",\"description\":\"$rule\"}]}]}"

for uid in "$deep" "$beta" "$alpha" "$walk"; do
  call DELETE "$groups/$uid"
  expect 'delete' 200 ''
done
rule="there is no group $walk"
call GET "$groups/$walk"
expect 'get what is gone' 404 "{\"code\":5,\"message\":\"Not found: group: $rule\",\"details\":[$(info NOT_FOUND),\
{\"@type\":\"$rpc.ResourceInfo\",\"resourceType\":\"iam.chainguard.dev/Group\",\"resourceName\":\"$walk\"}]}"
TOKEN=none
call GET "$groups"
expect 'list without a token' 401 "{\"code\":16,\"message\":\"Unauthenticated: authorization: a valid bearer token is required\",\"details\":[$(info UNAUTHENTICATED)]}"
