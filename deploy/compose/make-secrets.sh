#!/bin/sh
# Writes the secrets that compose.yml mounts, once: it replaces none.
#
#   sudo ./make-secrets.sh [OWNER]
#
# Compose mounts each file with the owner and mode that it has here, so OWNER, 65532:65532 unless given, is the user of
# the containers. Keep a copy of secrets/master.key: without it the database cannot be used.
set -eu
umask 077
cd "$(dirname "$0")"
owner=${1:-65532:65532}

if [ -e secrets ]; then
  echo "make-secrets: $PWD/secrets exists already; remove it to make new secrets for a new database" >&2
  exit 1
fi

# 32 bytes in base64; for a URL, in hexadecimal.
random_key() { head -c 32 /dev/urandom | base64; }
random_word() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }

draft=secrets.$$
mkdir "$draft"
trap 'rm -rf "$draft"' EXIT
password=$(random_word)
printf %s "$password" >"$draft/postgres-password"
printf 'postgres://arbor:%s@postgres:5432/arbor' "$password" >"$draft/database-url"
random_key >"$draft/master.key"
random_word >"$draft/registry-secret"
chown "$owner" "$draft/database-url" "$draft/master.key" "$draft/registry-secret"
mv "$draft" secrets
