// Every method of every served service, by callers at every place of the tree,
// over all four protocols: who is let in follows from what the method declares
// and the roles bound, and from nothing else.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type DescMethodUnary, type DescService, fromJson, getOption, type MessageShape } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { EventsService } from "#gen/arbor/events/v1/events_pb.js";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { iam } from "#gen/chainguard/annotations/annotations_pb.js";
import { CapabilitySchema, name as capabilityName } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { Auth, type WhoAmISchema } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { builtinRoles } from "../../src/iam/roles/builtin-roles.js";
import { randomIds } from "../../src/kernel/ids.js";
import { createMethodTable } from "../../src/pipeline/method-table.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { insertGroup, type Placed, populate } from "../iam/populate.js";
import { type Harness, startHarness } from "../support/harness.js";
import { readDocument } from "../support/openapi/request.js";
import { groupRow } from "../support/rows.js";
import { sample } from "../support/scale.js";
import { clientsFor, type RawClient, type RawResponse, rawClients, requestOf } from "./iam-clients.js";
import {
  calledMethods,
  findScopeField,
  isUnavailable,
  methods,
  nameOf,
  requestAt,
  services,
  subjectOf,
} from "./iam-methods.js";

interface CallerAt {
  readonly name: string;
  readonly role?: string;
  readonly at?: "root" | "parent" | "target" | "sibling" | "foreign";
}

const callers: readonly CallerAt[] = [
  { name: "no token" },
  { name: "an identity without rights", role: "" },
  { name: "a viewer of the group", role: "viewer", at: "target" },
  { name: "an editor of the group", role: "editor", at: "target" },
  { name: "an owner of the group", role: "owner", at: "target" },
  { name: "an owner of a sibling", role: "owner", at: "sibling" },
  { name: "an owner of the group above", role: "owner", at: "parent" },
  { name: "an owner of the root", role: "owner", at: "root" },
  { name: "an owner of another root", role: "owner", at: "foreign" },
];

let harness: Harness;
let clients: readonly RawClient[];
let target: Placed;
let foreign: Placed;
const groups: Record<string, string> = {};
const tokens = new Map<string, string>();
const uids = new Map<string, string>();

before(async () => {
  harness = await startHarness();
  clients = rawClients(harness.url);
  groups.root = (await harness.organisation("ours")).group;
  groups.foreign = (await harness.organisation("theirs")).group;
  groups.parent = randomIds.newUid(groups.root);
  groups.target = randomIds.newUid(groups.parent);
  groups.sibling = randomIds.newUid(groups.parent);
  const texts = { name: "n", text: "t" };
  [target, foreign] = await harness.app.installation.store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(groups.parent ?? ""));
    await tx.table(groupKind).insert(groupRow(groups.sibling ?? ""));
    return [await insertGroup(tx, groups.target ?? "", texts), await populate(tx, groups.foreign ?? "", texts)];
  });
  for (const caller of callers) {
    if (caller.role === undefined) continue;
    const { uid, token } = await createCaller(caller);
    uids.set(caller.name, uid);
    tokens.set(caller.name, token);
  }
});

/** A new identity at the place of a caller. */
async function createCaller({ role = "", at }: CallerAt): Promise<{ readonly uid: string; readonly token: string }> {
  const made = await harness.identity();
  if (at) await harness.bind(made.uid, role, groups[at] ?? "");
  return made;
}

after(async () => {
  for (const client of clients) client.close();
  await harness.stop();
});

// The rule, written down without the service's own: all that a method names, at
// the place the request names or at one above it.
function capabilitiesOf(method: DescMethodUnary): readonly string[] | "public" {
  const known = capabilities.get(method) ?? readCapabilities(method);
  capabilities.set(method, known);
  return known;
}

const capabilities = new Map<DescMethodUnary, readonly string[] | "public">();

function readCapabilities(method: DescMethodUnary): readonly string[] | "public" {
  const { mode } = getOption(method, iam);
  if (mode.case !== "enabled") return "public";
  return mode.value.capabilities.map((number) => {
    const value = CapabilitySchema.values.find((one) => one.number === number);
    assert.ok(value);
    return getOption(value, capabilityName);
  });
}

function mayCall(method: DescMethodUnary, { role, at }: CallerAt, uid: string): boolean {
  const needed = capabilitiesOf(method);
  if (needed === "public" || findScopeField(method).length === 0) return true;
  const group = at === undefined ? "none" : (groups[at] ?? "none");
  return `${uid}/`.startsWith(`${group}/`) && needed.every((one) => builtinRoles[role ?? ""]?.includes(one));
}

// Every role at the group itself, and of those above and of those elsewhere one in turn: what a role holds depends on the
// method, and how far it reaches does not.
function callersFor({ parent }: DescMethodUnary, row: number): readonly CallerAt[] {
  const isAbove = ({ at }: CallerAt) => at === "parent" || at === "root";
  const isAtGroup = ({ at }: CallerAt) => at === "target";
  const above = callers.filter(isAbove);
  const elsewhere = callers.filter((one) => !isAbove(one) && !isAtGroup(one) && one.role !== undefined);
  const unknown = callers.filter(({ role }) => role === undefined);
  // The stable names of version 2 have the rules and the handlers of its beta, so one caller with rights and one without do.
  if (parent.typeName.includes(".v2."))
    return [...sample([...callers.filter(isAtGroup), ...above], row), ...sample([...unknown, ...elsewhere], row)];
  return [...unknown, ...callers.filter(isAtGroup), ...sample(above, row), ...sample(elsewhere, row)];
}

describe("the authorization matrix", () => {
  it("covers every service there is", async () => {
    const { tags } = await readDocument(harness.url);
    // audit-access.test.ts has the cases of the audit log, events/events-api.test.ts those of EventsService,
    // issuer/sessions.test.ts those of SessionsService, access those of AccessService.
    const own = [AccessService, AuditService, EventsService, SessionsService];
    const others = [SecurityTokenService, Auth, ...own].map(({ typeName }) => typeName);
    const covered = [...methods.map(({ parent }) => parent.typeName), ...others];
    assert.deepEqual(new Set(tags.map(({ name }) => name)), new Set(covered));
  });

  it("covers every service with a capability for nearly every method", () => {
    assert.ok(methods.length >= 240, `${methods.length} methods`);
    const namesOf = (some: readonly DescMethodUnary[]) => [...new Set(some.map(nameOf))].sort();
    const free = namesOf(methods.filter((one) => capabilitiesOf(one) === "public"));
    assert.deepEqual(free, ["ping.PingService.Ping", "ping.v2.PingService.Ping", "ping.v2beta1.PingService.Ping"]);
    const unscoped = methods.filter((one) => findScopeField(one).length === 0 && !one.name.startsWith("List"));
    const ofBeta = [
      "iam.v2beta1.GroupsService.CheckEligibility",
      "iam.v2beta1.GroupsService.LookupGroup",
      "iam.v2beta1.GroupsService.RequestGroupAccess",
      "iam.v2beta1.IdentitiesService.LookupIdentity",
      "iam.v2beta1.IdentitiesService.UpdateIdentityMetadata",
      "ping.v2beta1.PingService.Ping",
      "versions.v2beta1.VersionsService.GetProject",
    ];
    const ofV1 = [
      "events.Identities.Create",
      "events.Identities.UpdateMetadata",
      "iam.GroupInvites.CreateWithGroup",
      "iam.Groups.CheckEligibility",
      "iam.Groups.LookupGroup",
      "iam.Groups.RequestGroupAccess",
      "iam.Identities.Lookup",
      "ping.PingService.Ping",
      "registry.Registry.GetBuildStatus",
      "registry.Registry.GetPackageVersionMetadata",
      "registry.Vulnerabilities.GetRawVulnReport",
    ];
    const stable = ofBeta.map((name) => name.replace("v2beta1", "v2"));
    // One's own bindings lie anywhere.
    const own = ["arbor.bindings.v1.BindingsService.AcceptBinding", "arbor.bindings.v1.BindingsService.DropBinding"];
    assert.deepEqual(namesOf(unscoped), [...ofBeta, ...stable, ...ofV1, ...own].sort());
  });

  it("gives version 2 the rules and the handlers of its beta", () => {
    const table = createMethodTable(services);
    const rulesOf = ({ typeName }: DescService, method: string) => {
      const entry = table.get(`/${typeName}/${method}`) ?? assert.fail(`${typeName}.${method}`);
      const { auth, maxRequestBytes } = entry;
      const access = entry.kind === "unary" ? entry.access : "read";
      const rules = { access, maxRequestBytes };
      return auth.mode === "guarded" ? { ...rules, ...auth, scope: auth.scope?.field } : { ...rules, mode: auth.mode };
    };
    const stable = services.filter(({ desc }) => desc.typeName.includes(".v2."));
    assert.ok(stable.length >= 15, `${stable.length} services`);
    for (const { desc, handlers } of stable) {
      const beta = services.find((one) => one.desc.typeName === desc.typeName.replace(".v2.", ".v2beta1."));
      if (beta === undefined) throw new Error(`${desc} has no beta`);
      assert.equal(handlers, beta.handlers, desc.typeName);
      for (const { name } of desc.methods) assert.deepEqual(rulesOf(desc, name), rulesOf(beta.desc, name), name);
    }
  });

  // One's own bindings lie anywhere, and nobody else may touch them: test/iam/pending-bindings.test.ts.
  const own = /^arbor\.bindings\.v1\.BindingsService\.(Accept|Drop)Binding$/;
  for (const [row, method] of calledMethods.filter((one) => !own.test(nameOf(one))).entries()) {
    for (const [column, caller] of callersFor(method, row).entries()) {
      it(`${nameOf(method)} by ${caller.name}`, async () => {
        const there = subjectOf(method, target);
        const allowed = mayCall(method, caller, there);
        // Allowed deletions go for what is not there, so that all calls meet the same tree.
        const uid = allowed && method.name.startsWith("Delete") ? randomIds.newUid(target.group) : there;
        const token = tokens.get(caller.name);
        const guarded = capabilitiesOf(method) !== "public";
        const check = async (client: RawClient) => {
          const { code, bytes } = await client.call(method, requestAt(method, uid), token);
          if (guarded && token === undefined) assert.equal(code, "UNAUTHENTICATED", client.name);
          else if (!allowed) assert.equal(code, "PERMISSION_DENIED", `${client.name}: ${bytes}`);
          else if (isUnavailable(method)) {
            // Rights that count nowhere in particular are looked at by the handler.
            const unplaced = findScopeField(method).length === 0;
            assert.match(code, unplaced ? /^(UNIMPLEMENTED|PERMISSION_DENIED)$/ : /^UNIMPLEMENTED$/, client.name);
          } else
            assert.ok(
              !/^(PERMISSION_DENIED|UNAUTHENTICATED|INTERNAL|UNIMPLEMENTED|UNKNOWN)$/.test(code),
              `${client.name}: ${code} ${bytes}`,
            );
        };
        await Promise.all(sample(clientsFor(method, clients), row + column).map(check));
      });
    }
  }
});

describe("what is of another organisation", () => {
  for (const [row, method] of calledMethods.filter((one) => findScopeField(one).length > 0).entries()) {
    it(`looks to ${nameOf(method)} like what is not there, byte for byte`, async () => {
      const token = tokens.get("an owner of the root");
      const there = subjectOf(method, foreign);
      const depth = there.split("/").length;
      const elsewhere = Array.from({ length: depth }, () => 0).reduce((above) => randomIds.newUid(above), "");
      const beside = there.includes("/")
        ? randomIds.newUid(there.slice(0, there.lastIndexOf("/")))
        : randomIds.newUid();
      const check = async (client: RawClient) => {
        const responses: string[] = [];
        for (const uid of [there, elsewhere, beside]) {
          const { code, bytes } = await client.call(method, requestAt(method, uid), token);
          assert.equal(code, "PERMISSION_DENIED", client.name);
          responses.push(bytes.replaceAll(uid, "UID").replaceAll(encodeURIComponent(uid), "UID"));
        }
        assert.deepEqual(responses, [responses[0], responses[0], responses[0]], client.name);
      };
      await Promise.all(sample(clientsFor(method, clients), row).map(check));
    });
  }
});

const known = callers.filter(({ role }) => role !== undefined);

describe("Auth.Validate", () => {
  const { validate } = Auth.method;
  const whoAmI = async (client: RawClient, token: string | undefined) => {
    const response: RawResponse = await client.call(validate, requestOf(validate, {}), token);
    const message =
      response.message ?? (response.code === "OK" ? fromJson(validate.output, response.json ?? {}) : undefined);
    return { code: response.code, message: message as MessageShape<typeof WhoAmISchema> | undefined };
  };

  for (const caller of callers) {
    it(`tells ${caller.name} of itself alone`, async () => {
      const { name, role = "", at } = caller;
      const expected = at === undefined ? [] : [[groups[at], role, [...(builtinRoles[role] ?? [])].sort()]];
      for (const client of clients) {
        const { code, message } = await whoAmI(client, tokens.get(name));
        if (caller.role === undefined) assert.equal(code, "UNAUTHENTICATED", client.name);
        else {
          assert.deepEqual([code, message?.subject], ["OK", uids.get(name)], client.name);
          const told = message?.capabilities.map(({ group, role: given, capabilities }) => {
            return [group?.id, given?.name, [...capabilities].sort()];
          });
          assert.deepEqual(told, expected, client.name);
        }
      }
    });
  }
});

describe("Auth.Delete", () => {
  const { delete: method, validate } = Auth.method;
  const forget = (client: RawClient, id: string, token: string | undefined) =>
    client.call(method, requestOf(method, { id }), token);
  const codeFor = async (client: RawClient, token: string) =>
    (await client.call(validate, requestOf(validate, {}), token)).code;

  for (const [row, { name, role }] of callers.entries()) {
    it(`by ${name} is refused for everybody else, there or not`, async () => {
      const token = tokens.get(name);
      const others = known.filter((one) => one.name !== name).map((one) => uids.get(one.name) ?? "");
      // Those of one form, the last of which is not there.
      const forms = [
        [...others, randomIds.newUid()],
        [target.identity, randomIds.newUid(target.group)],
      ];
      for (const client of sample(clients, row)) {
        for (const ids of forms) {
          const responses = new Set<string>();
          for (const id of ids) {
            const { code, bytes } = await forget(client, id, token);
            assert.equal(code, role === undefined ? "UNAUTHENTICATED" : "PERMISSION_DENIED", client.name);
            responses.add(bytes.replaceAll(id, "UID").replaceAll(encodeURIComponent(id), "UID"));
          }
          assert.equal(responses.size, 1, client.name);
        }
      }
      for (const token of tokens.values()) assert.equal(await codeFor(clients[0] as RawClient, token), "OK");
    });
  }

  for (const [row, caller] of known.entries()) {
    it(`takes away who was ${caller.name}, and nobody else`, async () => {
      for (const client of sample(clients, row)) {
        const { uid, token } = await createCaller(caller);
        assert.equal(await codeFor(client, token), "OK");
        assert.equal((await forget(client, uid, token)).code, "OK", client.name);
        for (const each of clients) assert.equal(await codeFor(each, token), "UNAUTHENTICATED", each.name);
        const { store } = harness.app.installation;
        assert.deepEqual(await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid)), []);
      }
      for (const token of tokens.values()) assert.equal(await codeFor(clients[0] as RawClient, token), "OK");
    });
  }
});

describe("methods that authenticate their callers by themselves", () => {
  const { exchange, exchangeRefreshToken } = SecurityTokenService.method;
  const requests: readonly (readonly [what: string, DescMethodUnary, () => object])[] = [
    ["Exchange for a person", exchange, () => ({ aud: [harness.url] })],
    ["Exchange for an identity", exchange, () => ({ aud: [harness.url], identity: target.identity })],
    ["ExchangeRefreshToken", exchangeRefreshToken, () => ({})],
    ["Register", Auth.method.register, () => ({ code: "code" })],
  ];
  // Fewer calls than an address may have refused at once (docs/security.md).
  for (const [what, method, request] of requests) {
    it(`${what}: an API token is no credential there, of any identity`, async () => {
      for (const client of clients) {
        const responses = new Set<string>();
        const none = await client.call(method, requestOf(method, request()));
        assert.equal(none.code, "UNAUTHENTICATED", client.name);
        for (const token of ["garbage", ...tokens.values()]) {
          const { code, bytes } = await client.call(method, requestOf(method, request()), token);
          assert.equal(code, "UNAUTHENTICATED", client.name);
          responses.add(bytes);
        }
        assert.equal(responses.size, 1, `${client.name}: one answer to all of them`);
      }
    });
  }

  it("GetHeadlessSession: what is not there looks the same to everybody", async () => {
    const { getHeadlessSession: method } = Auth.method;
    for (const client of clients) {
      const responses = new Set<string>();
      for (const token of [undefined, "garbage", ...tokens.values()]) {
        const { code, bytes } = await client.call(method, requestOf(method, { code: randomIds.newId() }), token);
        assert.equal(code, "NOT_FOUND", client.name);
        responses.add(bytes);
      }
      assert.equal(responses.size, 1, client.name);
    }
  });
});
