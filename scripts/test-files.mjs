// Lists the test files.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Folders of tests that need PostgreSQL, a browser, Python, a container registry, Prometheus, proxies, packages of Debian, the
 * npm registry, programs of several languages or an idle machine.
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
  "examples",
  "scim-tester",
];

/** The paths of the tests in `directory`, without those in folders named in `skipped`. */
export function testsIn(directory, skipped) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : testsIn(path, skipped);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}

// All tests start processes by these files; the architecture test finds others.
const STARTERS = ["child-process", "other-node", "packed"].map((name) => join("test", "support", `${name}.ts`));
/** All tests start the service in their own process by these. */
const SERVICE = [join("test", "support", "harness.ts"), join("src", "app", "app.ts"), join("src", "app", "server.ts")];
const IMPORT = /\bfrom "(\.[^"]+)\.js"/g;
const known = new Map();

/** Whether a file of `test/` starts processes, itself or by what it imports. */
export function startsProcesses(path) {
  return reaches(path, STARTERS);
}

/** Whether a file of `test/` starts the service in its own process. */
export function startsService(path) {
  return reaches(path, SERVICE);
}

function reaches(path, targets) {
  if (targets.includes(path)) return true;
  const key = `${targets[0]} ${path}`;
  if (!known.has(key)) {
    // So that a cycle of imports ends.
    known.set(key, false);
    const imports = [...readFileSync(path, "utf8").matchAll(IMPORT)].map(([, name]) =>
      join(dirname(path), `${name}.ts`),
    );
    // Generated files are not TypeScript.
    const followed = imports.filter(
      (name) => targets.includes(name) || (name.startsWith(join("test", "")) && existsSync(name)),
    );
    known.set(
      key,
      followed.some((name) => reaches(name, targets)),
    );
  }
  return known.get(key);
}

/** About how many seconds the longest files take; all others take about half a second. */
const LONG = new Map([
  ["test/pg/store.test.ts", 36],
  ["test/e2e/workers.test.ts", 32],
  ["test/e2e/worker-ends.test.ts", 60],
  ["test/e2e/how-to.test.ts", 25],
  ["test/app/workers/parent.test.ts", 40],
  ["test/pg/workers.test.ts", 15],
  ["test/pg/master-key.test.ts", 20],
  ["test/e2e/signals.test.ts", 18],
  ["test/pg/jobs.test.ts", 16],
  ["test/transport/overload.test.ts", 16],
  ["test/pg/upgrade.test.ts", 15],
  ["test/app/process.test.ts", 13],
  ["test/audit/retention.test.ts", 13],
  ["test/audit/tampering.test.ts", 13],
  ["test/pg/copy.test.ts", 13],
  ["test/store/sqlite.test.ts", 13],
  ["test/contract/openapi-requests.test.ts", 12],
  ["test/pg/audit.test.ts", 12],
  ["test/pg/check.test.ts", 12],
  ["test/pg/list-oracle.test.ts", 8],
  ["test/pg/quotas.test.ts", 12],
  ["test/transport/second-service.test.ts", 12],
  ["test/issuer/sts/failure-throttle.test.ts", 11],
  ["test/pg/advisory-filters.test.ts", 11],
  ["test/pg/advisory-oracle.test.ts", 10],
  ["test/access/access.test.ts", 9],
  ["test/access/tenants.test.ts", 6],
  ["test/iam/visibility.test.ts", 10],
  ["test/issuer/sts/limits.test.ts", 10],
  ["test/transport/protocols.test.ts", 10],
  ["test/vulnerabilities/filters.test.ts", 10],
  ["test/vulnerabilities/many-advisories.test.ts", 10],
  ["test/vulnerabilities/advisory-oracle.test.ts", 8],
  ["test/cli/host/demo.test.ts", 9],
  ["test/contract/rules.test.ts", 13],
  ["test/e2e/master-key.test.ts", 9],
  ["test/iam/many-roots.test.ts", 9],
  ["test/pg/keys.test.ts", 9],
  ["test/transport/mount/ends-and-limits.test.ts", 9],
  ["test/cli/host/backup.test.ts", 8],
  ["test/cli/host/registry/configure.test.ts", 8],
  ["test/contract/openapi-operations.test.ts", 8],
  ["test/issuer/mutations/mutations.test.ts", 8],
  ["test/issuer/upstream/issuers-cache.test.ts", 8],
  ["test/pg/audit-events.test.ts", 8],
  ["test/upgrade/sqlite.test.ts", 8],
  ["test/audit/sealer.test.ts", 7],
  ["test/contract/authorization-matrix.test.ts", 7],
  ["test/contract/named-values.test.ts", 7],
  ["test/e2e/traces.test.ts", 7],
  ["test/issuer/keys/key-ring.test.ts", 7],
  ["test/issuer/maintenance.test.ts", 7],
  ["test/outbound/guarded-fetch-limits.test.ts", 7],
  ["test/pg/migrate.test.ts", 7],
  ["test/transport/services/health-watch.test.ts", 7],
  ["test/contract/fuzz.test.ts", 6],
  ["test/contract/request-sizes.test.ts", 6],
  ["test/e2e/kill9.test.ts", 6],
  ["test/iam/tenants.test.ts", 6],
  ["test/transport/long-lists.test.ts", 6],
  ["test/transport/services/reflection-client.test.ts", 6],
  ["test/vulnerabilities/import-command.test.ts", 6],
  ["test/audit/retention-cli.test.ts", 5],
  ["test/cli/host/check/sqlite.test.ts", 5],
  ["test/cli/remote/auth/credentials.test.ts", 5],
  ["test/cli/remote/auth/login.test.ts", 5],
  ["test/e2e/cli.test.ts", 5],
  ["test/issuer/keys/commands.test.ts", 5],
  ["test/issuer/oauth/device.test.ts", 5],
  ["test/issuer/upstream/verify.test.ts", 5],
  ["test/pipeline/auth/authenticate.test.ts", 5],
  ["test/store/list-oracle.test.ts", 5],
  ["test/transport/limits.test.ts", 5],
  ["test/transport/open-requests.test.ts", 5],
  ["test/transport/peer-faults.test.ts", 5],
  ["test/app/metrics.test.ts", 4],
  ["test/app/start-modules.test.ts", 4],
  ["test/audit/api/events.test.ts", 4],
  ["test/audit/api/verify.test.ts", 4],
  ["test/cli/host/open-modes.test.ts", 4],
  ["test/cli/remote/iam/process.test.ts", 4],
  ["test/cli/shared-file.test.ts", 4],
  ["test/contract/groups-access.test.ts", 3],
  ["test/contract/quota-operations.test.ts", 4],
  ["test/iam/v1/long-lists-v1.test.ts", 4],
  ["test/issuer/auth-v1-invites.test.ts", 4],
  ["test/registry/token-credentials.test.ts", 4],
  ["test/registry/v1/tags-v1.test.ts", 4],
  ["test/store/backup/backup.test.ts", 4],
  ["test/store/backup/kills.test.ts", 4],
  ["test/store/copy/copy.test.ts", 4],
  ["test/support/child-process.test.ts", 4],
  ["test/transport/http/static-document.test.ts", 4],
  ["test/transport/mount/as-connect-node.test.ts", 4],
  ["test/app/app.test.ts", 3],
  ["test/app/database-overload.test.ts", 3],
  ["test/app/mount-order.test.ts", 3],
  ["test/app/request-metrics.test.ts", 3],
  ["test/app/traces.test.ts", 3],
  ["test/audit/api/event-feed.test.ts", 3],
  ["test/audit/api/isolation.test.ts", 3],
  ["test/audit/api/tail.test.ts", 3],
  ["test/cli/variables.test.ts", 3],
  ["test/codec/json-differential.test.ts", 3],
  ["test/codec/json-writer.test.ts", 3],
  ["test/config/values.test.ts", 3],
  ["test/contract/callable-methods.test.ts", 3],
  ["test/e2e/one-processor.test.ts", 3],
  ["test/issuer/keys/interleaving.test.ts", 3],
  ["test/issuer/keys/token-algorithm.test.ts", 3],
  ["test/issuer/oauth/headless.test.ts", 3],
  ["test/issuer/oauth/id-token.test.ts", 3],
  ["test/issuer/sts/rejections.test.ts", 3],
  ["test/pg/same-dumps.test.ts", 3],
  ["test/pipeline/auth/api-token-cases.test.ts", 3],
  ["test/registry/notifications.test.ts", 3],
  ["test/transport/http/http-rule.test.ts", 3],
  ["test/transport/http1-framing.test.ts", 3],
  ["test/transport/openapi/home.test.ts", 3],
  ["test/transport/openapi/lint.test.ts", 3],
  ["test/transport/rest/query-random.test.ts", 3],
  ["test/vulnerabilities/v1/advisory-events-v1.test.ts", 3],
  ["test/app/embedding.test.ts", 2],
  ["test/audit/api/cli.test.ts", 2],
  ["test/audit/cli.test.ts", 2],
  ["test/audit/export.test.ts", 2],
  ["test/cli/host/config.test.ts", 2],
  ["test/cli/host/quota.test.ts", 2],
  ["test/cli/remote/session.test.ts", 2],
  ["test/e2e/iam-walkthrough.test.ts", 2],
  ["test/e2e/walkthrough.test.ts", 2],
  ["test/issuer/sts/wire.test.ts", 2],
  ["test/pg/lost-server.test.ts", 2],
  ["test/pg/point-in-time.test.ts", 2],
  ["test/pg/tls.test.ts", 2],
  ["test/scripts/sbom.test.ts", 2],
  ["test/store/data-directory.test.ts", 2],
  ["test/store/sqlite-file.test.ts", 2],
]);
const SHORT_S = 0.7;

/** About how long a file takes, in seconds. */
export function secondsOf(path) {
  return LONG.get(path) ?? SHORT_S;
}
