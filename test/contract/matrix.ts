// Runs the calls of the protocol matrix through any clients.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { RestClient } from "./clients.js";
import { withProtoFields } from "./expectations.js";
import { accessRequests } from "./matrix-access.js";
import type { MatrixCase } from "./matrix-case.js";
import { reads } from "./matrix-reads.js";
import { writes } from "./matrix-writes.js";
import type { WireClient } from "./wire.js";
import { startWorld, type World } from "./world.js";

/** The HTTP status of each code (google.rpc.Code), written down once more. */
export const STATUS: Readonly<Record<string, number>> = {
  OK: 200,
  INVALID_ARGUMENT: 400,
  FAILED_PRECONDITION: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNIMPLEMENTED: 501,
};

/** The one table of calls and outcomes, for every client. */
export const cases: readonly MatrixCase[] = [...reads, ...writes, ...accessRequests];

/**
 * Starts a service and runs every call through clients made for its URL.
 *
 * @param choose those of them that a row is sent by; all unless given
 */
export function describeMatrix<Client extends WireClient | RestClient>(
  makeClients: (url: string) => readonly Client[],
  choose: (clients: readonly Client[], row: number) => readonly Client[] = (all) => all,
): void {
  describe("the protocol matrix", () => {
    let world: World;
    let clients: readonly Client[] = [];

    before(async () => {
      world = await startWorld();
      clients = makeClients(world.url);
    });

    after(async () => {
      for (const client of clients) client.close();
      await world.stop();
    });

    for (const [row, one] of cases.entries()) {
      it(`${one.method} ${one.name}`, async () => {
        for (const client of choose(clients, row)) {
          const isRest = "status" in client;
          if (isRest && one.rest === "none") continue;
          await world.renew(one);
          const token = world.tokenOf(one.as ?? "owner");
          const rest = typeof one.rest === "object" ? world.fill(one.rest) : undefined;
          const outcome = await client.call({ method: one.method, request: world.fill(one.request), token, rest });
          const expected = (isRest ? one.expectRest : undefined) ?? one.expect;
          const named = client.namesProtoFields ? withProtoFields(expected) : expected;
          assert.deepEqual(world.mask(outcome), named, client.name);
          if (isRest) assert.equal(client.status, one.status ?? STATUS[expected.code]);
        }
      });
    }
  });
}
