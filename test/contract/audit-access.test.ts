// Who may call AuditService, over every protocol.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { connectTo, staticToken } from "../../src/client/index.js";
import { type IamWorld, startIamWorld } from "../iam/iam-world.js";
import { LIMIT_MS } from "../support/wait-until.js";
import { type RawClient, rawClients, requestOf } from "./iam-clients.js";

const { listEvents, getEvent } = AuditService.method;

describe("audit events", () => {
  let world: IamWorld;
  let clients: readonly RawClient[];
  before(async () => {
    world = await startIamWorld();
    clients = rawClients(world.url);
  });
  after(async () => {
    for (const client of clients) client.close();
    await world.stop();
  });

  // The code of the start of a stream, over gRPC.
  async function tailCode(scope: string, token: string | undefined): Promise<string> {
    const connection = connectTo({ baseUrl: world.url, ...(token !== undefined && { token: staticToken(token) }) });
    try {
      for await (const _ of connection.client(AuditService).tailEvents({ scope }, { timeoutMs: LIMIT_MS })) break;
      return "OK";
    } catch (error) {
      const { rawMessage = "" } = error as { rawMessage?: string };
      return (/^[^:]*/.exec(rawMessage)?.[0] ?? "").toUpperCase().replaceAll(" ", "_");
    } finally {
      connection.close();
    }
  }

  async function listCodes(scope: string, token: string | undefined): Promise<string[]> {
    const codes = clients.map(
      async (client) => (await client.call(listEvents, requestOf(listEvents, { scope, startTime: {} }), token)).code,
    );
    return [...new Set([...(await Promise.all(codes)), await tailCode(scope, token)])];
  }

  it("are for those who may list role bindings at the scope", async () => {
    const { root, child, grandchild, foreign } = world;
    const list = ["role_bindings.list"];
    const [atRoot, atChild] = [(await world.caller(list)).token, (await world.caller(list, child)).token];
    const others = (await world.caller(["groups.list", "roles.list", "role_bindings.create"])).token;
    const denied = "PERMISSION_DENIED";
    const cases: readonly (readonly [token: string | undefined, scope: string, code: string])[] = [
      [undefined, root, "UNAUTHENTICATED"],
      [(await world.harness.identity()).token, root, denied],
      [others, root, denied],
      [atRoot, root, "OK"],
      [atRoot, grandchild, "OK"],
      [atRoot, foreign, denied],
      [atRoot, "0".repeat(40), denied],
      [atChild, root, denied],
      [atChild, child, "OK"],
      [atChild, grandchild, "OK"],
      [(await world.createBound("viewer")).token, root, "OK"],
      [world.owner.token, root, "OK"],
      [world.foreignOwner.token, root, denied],
      [atRoot, "", "INVALID_ARGUMENT"],
      [atRoot, "x", "INVALID_ARGUMENT"],
    ];
    for (const [token, scope, code] of cases) assert.deepEqual(await listCodes(scope, token), [code], scope);
  });

  it("are read one by one by those who may list them", async () => {
    const { token, rest } = await world.caller(["role_bindings.list", "groups.create"], world.child);
    assert.equal((await rest("POST", `/groups/${world.child}`, { name: "new" })).status, 200);
    const [rpc] = clients.filter(({ name }) => name === "Connect") as [RawClient];
    const { json } = await rpc.call(listEvents, requestOf(listEvents, { scope: world.child, startTime: {} }), token);
    const [{ id = "" } = {}] = (json?.events ?? []) as { id?: string }[];
    const cases: readonly (readonly [token: string | undefined, code: string])[] = [
      [undefined, "UNAUTHENTICATED"],
      [token, "OK"],
      [world.owner.token, "OK"],
      [world.foreignOwner.token, "NOT_FOUND"],
      [(await world.harness.identity()).token, "NOT_FOUND"],
      [(await world.caller(["groups.list"])).token, "NOT_FOUND"],
    ];
    for (const client of clients) {
      for (const [caller, code] of cases) {
        assert.equal((await client.call(getEvent, requestOf(getEvent, { id }), caller)).code, code, client.name);
      }
      assert.equal((await client.call(getEvent, requestOf(getEvent, { id: "1" }), token)).code, "INVALID_ARGUMENT");
    }
  });
});
