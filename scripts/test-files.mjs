// Lists the test files.
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Folders of tests that need PostgreSQL, a browser, a container registry, the npm registry or an idle machine. */
export const SEPARATE = ["pg", "pack", "browser", "registry-e2e", "hostile"];

/** The paths of the tests in `directory`, without those in folders named in `skipped`. */
export function testsIn(directory, skipped) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return skipped.includes(entry.name) ? [] : testsIn(path, skipped);
    return entry.name.endsWith(".test.ts") ? [path] : [];
  });
}

/** About how many seconds the longest files take; all others take one or less. */
const LONG = new Map([
  ["test/app/process.test.ts", 32],
  ["test/iam/many-roots.test.ts", 17],
  ["test/contract/authorization-matrix.test.ts", 17],
  ["test/contract/openapi-operations.test.ts", 15],
  ["test/contract/fuzz.test.ts", 14],
  ["test/cli/host/demo.test.ts", 14],
  ["test/iam/visibility.test.ts", 12],
  ["test/iam/tenants.test.ts", 11],
  ["test/issuer/keys/rotation.test.ts", 11],
  ["test/vulnerabilities/import-command.test.ts", 10],
  ["test/store/sqlite.test.ts", 9],
  ["test/issuer/sts/limits.test.ts", 9],
  ["test/audit/sealer.test.ts", 8],
  ["test/transport/rpc/health-watch.test.ts", 8],
  ["test/cli/remote/auth/docker.test.ts", 8],
  ["test/cli/remote/auth/login.test.ts", 8],
  ["test/issuer/sts/failure-throttle.test.ts", 8],
  ["test/issuer/keys/interleaving.test.ts", 7],
  ["test/transport/long-lists.test.ts", 7],
  ["test/transport/protocols.test.ts", 7],
  ["test/e2e/kill9.test.ts", 7],
  ["test/issuer/auth-v1-invites.test.ts", 7],
  ["test/contract/matrix.test.ts", 7],
  ["test/outbound/guarded-fetch-limits.test.ts", 7],
  ["test/vulnerabilities/filters.test.ts", 6],
  ["test/contract/request-sizes.test.ts", 6],
  ["test/issuer/maintenance.test.ts", 6],
  ["test/transport/second-service.test.ts", 6],
  ["test/issuer/upstream/issuers-cache.test.ts", 6],
  ["test/cli/remote/iam/process.test.ts", 6],
  ["test/cli/shared-file.test.ts", 5],
  ["test/e2e/one-processor.test.ts", 5],
  ["test/contract/quota-operations.test.ts", 5],
  ["test/transport/rpc/reflection-client.test.ts", 5],
  ["test/upgrade/sqlite.test.ts", 5],
]);
const SHORT_S = 0.6;

/** About how long a file takes, in seconds. */
export function secondsOf(path) {
  return LONG.get(path) ?? SHORT_S;
}
