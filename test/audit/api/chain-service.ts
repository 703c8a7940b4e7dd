// AuditService over a log, on a socket, without the jobs of a service: the log is sealed and attacked by the test.
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { auditV1, createEventIds } from "../../../src/audit/audit-v1.js";
import { createEventFeed, createEventStreams } from "../../../src/audit/event-feed.js";
import { type ExpectedChain, type RemoteReport, verifyRemoteLog } from "../../../src/cli/remote/audit/chain-client.js";
import { withSession } from "../../../src/cli/remote/session.js";
import { buildCapabilitySet } from "../../../src/iam/roles/capability-names.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { createPageTokens } from "../../../src/kernel/page-token.js";
import { createAuthenticateCaller } from "../../../src/pipeline/auth/authenticate.js";
import { createInvoke } from "../../../src/pipeline/invoke.js";
import { createInvokeStream } from "../../../src/pipeline/invoke-stream.js";
import { createMethodTable } from "../../../src/pipeline/method-table.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { defaultLimits } from "../../../src/transport/http/limits/limits.js";
import { bindPort } from "../../../src/transport/http/listener.js";
import { Gateway } from "../../../src/transport/rest/gateway.js";
import { createServe } from "../../../src/transport/serve.js";
import { createServer } from "../../../src/transport/server.js";
import { groupRow, identityRow, roleRow } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";
import type { Log } from "../log-kit.js";

/** What a verifier needs. */
export const VERIFIER_RIGHTS = ["role_bindings.list", "role_bindings.create"];

/** A log that is served. */
export interface ServedLog {
  readonly url: string;
  /** A file with a token that the service accepts. */
  readonly tokenFile: string;
  /** Verifies a log as `arbor audit verify --scope` does. */
  verify(rootUid: string, expected?: ExpectedChain): Promise<RemoteReport>;
  stop(): Promise<void>;
}

/** Serves a log to a caller who holds `capabilities` at each of `roots`. */
export async function serveLog(
  { store, keys }: Pick<Log, "store" | "keys">,
  roots: readonly string[],
  capabilities: readonly string[] = VERIFIER_RIGHTS,
): Promise<ServedLog> {
  const identityUid = randomIds.newUid();
  const roleUid = randomIds.newUid();
  await store.write(async (tx) => {
    await tx.table(identityKind).insert(identityRow(identityUid));
    await tx.table(roleKind).insert(roleRow(roleUid, { capabilities: buildCapabilitySet(capabilities) }));
    for (const groupUid of roots) {
      if ((await tx.table(groupKind).find(groupUid)) === undefined)
        await tx.table(groupKind).insert(groupRow(groupUid));
      await tx.table(roleBindingKind).insert({
        ...{ uid: randomIds.newUid(groupUid), groupUid, identityUid, roleUid },
        ...{
          automatic: false,
          accepted: false,
          managedByUid: null,
          endTimeMs: null,
          pending: false,
          createTimeMs: 1_000,
          updateTimeMs: 1_000,
        },
      });
    }
  });
  const clock = Date.now;
  const errorDomain = "audit.test";
  const methods = createMethodTable([
    auditV1({
      ...{ store, clock, keys, stopping: new AbortController().signal, streams: createEventStreams() },
      bodyReaders: new Map(),
      tokens: createPageTokens(() => [{ id: "00".repeat(8), secret: Buffer.alloc(32) }]),
      eventIds: createEventIds(Buffer.alloc(16)),
      eventFeed: createEventFeed({ store, onProblem: () => {} }),
    }),
  ]);
  const token = randomBytes(16).toString("hex");
  const principal = { identityUid, tokenId: "t", issuedAt: 1e9, expiresAt: 2e10 };
  const pipeline = { store, clock, errorDomain, onInternalError: (error: Error) => console.error(error.cause) };
  const serve = createServe({
    invoke: createInvoke(pipeline),
    invokeStream: createInvokeStream(pipeline),
    authenticateCaller: createAuthenticateCaller(() => principal),
    ...{ clock, errorDomain, limits: defaultLimits },
    onInternalError: (error) => console.error(error),
  });
  const gateway = new Gateway({ serve, methods: methods.values() });
  const port = await bindPort({ host: "127.0.0.1", port: 0 });
  const server = createServer({ methods, serve, gateway, errorDomain, port, logger: createLogger("silent") });
  server.start();
  const url = `http://127.0.0.1:${port.address.port}`;
  const tokenFile = join(tempDir(), "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  return {
    url,
    tokenFile,
    async verify(rootUid, expected) {
      let report: RemoteReport | undefined;
      await withSession({ output: "table", api: url, tokenFile }, async ({ call }) => {
        report = await verifyRemoteLog(call, rootUid, expected);
      });
      if (report === undefined) throw new TypeError("nothing was verified");
      return report;
    },
    stop: () => server.stop(0),
  };
}

/** Serves a log for one verification. */
export async function verifyServed(log: Pick<Log, "store" | "keys">, rootUid: string): Promise<RemoteReport> {
  const served = await serveLog(log, [rootUid]);
  return served.verify(rootUid).finally(served.stop);
}
