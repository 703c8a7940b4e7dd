// Lists the test files.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/**
 * Folders of tests that need PostgreSQL, a browser, Python, a container registry, Prometheus, proxies, packages of Debian, the
 * npm registry or an idle machine.
 */
export const SEPARATE = [
  "pg",
  "pack",
  "browser",
  "python",
  "registry-e2e",
  "promtool",
  "proxies",
  "packages",
  "hostile",
];

/** The paths of the tests in `directory`, without those in folders named in `skipped`. */
export function testsIn(directory, skipped) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : testsIn(path, skipped);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}

/** About how many seconds the longest files take; all others take about half a second. */
const LONG = new Map([
  ["test/e2e/signals.test.ts", 18],
  ["test/app/process.test.ts", 16],
  ["test/audit/retention.test.ts", 15],
  ["test/e2e/master-key.test.ts", 15],
  ["test/issuer/keys/rotation.test.ts", 15],
  ["test/audit/tampering.test.ts", 13],
  ["test/iam/many-roots.test.ts", 13],
  ["test/contract/fuzz.test.ts", 12],
  ["test/issuer/sts/failure-throttle.test.ts", 11],
  ["test/issuer/maintenance.test.ts", 11],
  ["test/contract/openapi-operations.test.ts", 11],
  ["test/contract/authorization-matrix.test.ts", 11],
  ["test/transport/overload.test.ts", 10],
  ["test/contract/openapi-requests.test.ts", 10],
  ["test/transport/second-service.test.ts", 10],
  ["test/vulnerabilities/many-advisories.test.ts", 9],
  ["test/e2e/traces.test.ts", 9],
  ["test/audit/retention-cli.test.ts", 9],
  ["test/cli/host/registry/names.test.ts", 8],
  ["test/transport/mount/ends-and-limits.test.ts", 8],
  ["test/cli/host/demo.test.ts", 10],
  ["test/store/sqlite.test.ts", 10],
  ["test/cli/host/backup.test.ts", 8],
  ["test/store/backup/kills.test.ts", 7],
  ["test/upgrade/backup.test.ts", 6],
  ["test/store/backup/backup.test.ts", 3],
  ["test/vulnerabilities/import-command.test.ts", 9],
  ["test/transport/rpc/health-watch.test.ts", 8],
  ["test/kubernetes/manifests.test.ts", 4],
  ["test/iam/tenants.test.ts", 8],
  ["test/transport/long-lists.test.ts", 8],
  ["test/contract/rules.test.ts", 8],
  ["test/contract/named-values.test.ts", 8],
  ["test/audit/sealer.test.ts", 7],
  ["test/issuer/upstream/issuers-cache.test.ts", 7],
  ["test/outbound/guarded-fetch-limits.test.ts", 7],
  ["test/e2e/cli.test.ts", 7],
  ["test/issuer/sts/limits.test.ts", 7],
  ["test/issuer/keys/commands.test.ts", 6],
  ["test/issuer/keys/key-ring.test.ts", 6],
  ["test/e2e/kill9.test.ts", 11],
  ["test/issuer/keys/interleaving.test.ts", 6],
  ["test/iam/visibility.test.ts", 6],
  ["test/transport/protocols.test.ts", 6],
  ["test/cli/remote/auth/login.test.ts", 6],
  ["test/issuer/auth-v1-invites.test.ts", 5],
  ["test/contract/callable-methods.test.ts", 5],
  ["test/issuer/mutations/mutations.test.ts", 5],
  ["test/vulnerabilities/filters.test.ts", 5],
  ["test/contract/quota-operations.test.ts", 5],
  ["test/transport/open-requests.test.ts", 5],
  ["test/issuer/sts/access-log.test.ts", 5],
  ["test/transport/rpc/reflection-client.test.ts", 5],
  ["test/cli/remote/iam/process.test.ts", 5],
  ["test/cli/remote/auth/credentials.test.ts", 4],
  ["test/contract/matrix.test.ts", 4],
  ["test/cli/host/registry/configure.test.ts", 4],
  ["test/upgrade/sqlite.test.ts", 4],
  ["test/e2e/one-processor.test.ts", 4],
  ["test/app/heap-growth.test.ts", 4],
  ["test/contract/request-sizes.test.ts", 4],
  ["test/issuer/oauth/start-limit.test.ts", 4],
  ["test/transport/limits.test.ts", 4],
  ["test/cli/shared-file.test.ts", 3],
  ["test/e2e/walkthrough.test.ts", 3],
  ["test/issuer/oauth/device.test.ts", 3],
  ["test/transport/peer-faults.test.ts", 3],
  ["test/issuer/oauth/pending-bindings.test.ts", 3],
  ["test/registry/token-credentials.test.ts", 3],
  ["test/e2e/iam-walkthrough.test.ts", 3],
  ["test/store/data-directory.test.ts", 3],
  ["test/pipeline/auth/api-token-cases.test.ts", 2],
  ["test/transport/http/fair-queue.test.ts", 2],
  ["test/issuer/token-limits.test.ts", 2],
  ["test/transport/rpc/status-feed.test.ts", 2],
  ["test/issuer/sts/wire.test.ts", 2],
  ["test/audit/cli.test.ts", 2],
  ["test/iam/revocation.test.ts", 2],
  ["test/iam/decisions.test.ts", 2],
  ["test/cli/host/quota.test.ts", 2],
  ["test/e2e/hostile.test.ts", 2],
  ["test/issuer/upstream/verify.test.ts", 2],
  ["test/issuer/sts/rejections.test.ts", 2],
  ["test/cli/remote/session.test.ts", 2],
  ["test/cli/remote/iam/verbs.test.ts", 2],
  ["test/contract/groups-access.test.ts", 2],
  ["test/pipeline/list-chunks.test.ts", 2],
  ["test/iam/group-deletion.test.ts", 2],
  ["test/store/sqlite-file.test.ts", 2],
  ["test/scripts/words.test.ts", 2],
  ["test/vulnerabilities/v1/advisory-event-types-v1.test.ts", 2],
  ["test/transport/http/static-document.test.ts", 2],
  ["test/vulnerabilities/v1/advisory-events-v1.test.ts", 2],
  ["test/issuer/oauth/id-token.test.ts", 2],
  ["test/cli/remote/auth/docker.test.ts", 2],
  ["test/issuer/oauth/headless.test.ts", 2],
  ["test/audit/tampering.test.ts", 2],
  ["test/registry/v1/repos-v1.test.ts", 2],
  ["test/issuer/sts/relationships.test.ts", 2],
]);
const SHORT_S = 0.4;

/** About how long a file takes, in seconds. */
export function secondsOf(path) {
  return LONG.get(path) ?? SHORT_S;
}
