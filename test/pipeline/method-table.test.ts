import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { createPlatformServices } from "../../src/app/services.js";
import { authV1 } from "../../src/issuer/auth-v1.js";
import { createSecurityTokenService } from "../../src/issuer/sts/sts.js";
import { bitOf } from "../../src/pipeline/auth/authorize.js";
import type { Handler } from "../../src/pipeline/handlers.js";
import { createMethodTable, readAuthRule, type ServedService } from "../../src/pipeline/method-table.js";
import { declareMethod, declareService, type MethodSpec, onlyMethod, type ServiceSpec } from "./declare.js";

const capabilities = [Capability.CAP_IAM_GROUPS_LIST];
const guarded = { mode: { case: "enabled", value: { capabilities } } } as const;
const unscoped = { mode: { case: "enabled", value: { capabilities, unscoped: true } } } as const;
const anybody = { mode: { case: "enabled", value: { unscoped: true } } } as const;
const disabled = { mode: { case: "disabled", value: {} } } as const;
const messages: NonNullable<ServiceSpec["messages"]> = {
  Marked: { name: {}, uid: { scope: true } },
  Unmarked: { uid: {} },
  Twice: { uid: { scope: true }, other: { scope: true } },
};

const refused: readonly { spec: MethodSpec; rule: string; reason: string }[] = [
  { spec: {}, rule: " has no (chainguard.annotations.iam) option", reason: "no rule at all" },
  { spec: { iam: {} }, rule: ": the iam option names no mode", reason: "a rule that says nothing" },
  { spec: { iam: guarded }, rule: ": no field is marked iam_scope", reason: "no field at all" },
  {
    spec: { iam: guarded, fields: { uid: {} } },
    rule: ": no field is marked iam_scope",
    reason: "a uid that nothing marks",
  },
  {
    spec: { iam: guarded, fields: { uid: { scope: false } } },
    rule: ": no field is marked iam_scope",
    reason: "a field marked as not the scope",
  },
  {
    spec: { iam: guarded, fields: { uid: { scope: true }, parent: { scope: true } } },
    rule: ": more than one field is marked iam_scope",
    reason: "two fields marked",
  },
  {
    spec: { iam: guarded, fields: { group: { type: "message Twice", scope: true } } },
    rule: ": more than one field is marked iam_scope",
    reason: "two fields marked inside the marked message",
  },
  {
    spec: { iam: guarded, fields: { uid: { scope: true }, group: { type: "message Marked", scope: true } } },
    rule: ": more than one field is marked iam_scope",
    reason: "a field and one inside a message",
  },
  {
    spec: { iam: guarded, fields: { group: { type: "message Marked" } } },
    rule: ": no field is marked iam_scope",
    reason: "a marked field inside a message that is not marked itself",
  },
  {
    spec: { iam: guarded, fields: { group: { type: "message Unmarked", scope: true } } },
    rule: ": no field is marked iam_scope",
    reason: "a marked message without a marked field",
  },
  {
    spec: { iam: guarded, fields: { uids: { repeated: true, scope: true } } },
    rule: ": no field is marked iam_scope",
    reason: "a list names no one place",
  },
  {
    spec: { iam: { mode: { case: "enabled", value: { capabilities: [Capability.UNKNOWN], unscoped: true } } } },
    rule: ": capability 0 has no bit",
    reason: "the capability that stands for none",
  },
  {
    spec: { iam: { mode: { case: "enabled", value: { capabilities: [999_999 as Capability], unscoped: true } } } },
    rule: ": capability 999999 has no bit",
    reason: "a capability nobody knows",
  },
];

for (const { spec, rule, reason } of refused) {
  test(`refused at boot: ${reason}`, () => {
    const error = new TypeError(`arbor.test.rpc.Service.Do${rule}`);
    assert.throws(() => readAuthRule(declareMethod(spec, messages)), error);
    const service = declareService({ methods: { Do: spec }, messages });
    assert.throws(() => createMethodTable([{ desc: service, handlers: { do: () => ({}) } }]), error);
  });
}

const needed = [{ name: "groups.list", bit: bitOf(Capability.CAP_IAM_GROUPS_LIST) }];
const rules: readonly { spec: MethodSpec; rule: object; reason: string }[] = [
  { spec: { iam: disabled }, rule: { mode: "public" }, reason: "open to everybody" },
  { spec: { iam: unscoped }, rule: { mode: "guarded", capabilities: needed }, reason: "unscoped" },
  { spec: { iam: anybody }, rule: { mode: "guarded", capabilities: [] }, reason: "any authenticated caller" },
  {
    spec: { iam: { mode: { case: "enabled", value: {} } } },
    rule: { mode: "guarded", capabilities: [] },
    reason: "no capabilities need no scope",
  },
];

for (const { spec, rule, reason } of rules) {
  test(`rule: ${reason}`, () => assert.deepEqual(readAuthRule(declareMethod(spec, messages)), rule));
}

const scopes: readonly {
  fields: NonNullable<MethodSpec["fields"]>;
  request: Record<string, unknown>;
  field: string;
  uid: string;
}[] = [
  { fields: { uid: { scope: true } }, request: { uid: "a/b" }, field: "uid", uid: "a/b" },
  { fields: { uid: { scope: true } }, request: {}, field: "uid", uid: "" },
  { fields: { parent_uid: { scope: true } }, request: { parentUid: "a" }, field: "parentUid", uid: "a" },
  {
    fields: { group: { type: "message Marked", scope: true } },
    request: { group: { name: "n", uid: "a" } },
    field: "group.uid",
    uid: "a",
  },
  { fields: { group: { type: "message Marked", scope: true } }, request: {}, field: "group.uid", uid: "" },
  {
    fields: { parent: { scope: true }, group: { type: "message Marked" } },
    request: { parent: "p", group: { uid: "made up by the client" } },
    field: "parent",
    uid: "p",
  },
];

for (const { fields, request, field, uid } of scopes) {
  test(`scope ${field} of ${JSON.stringify(request)}: ${uid || "none"}`, () => {
    const method = declareMethod({ iam: guarded, fields }, messages);
    const rule = readAuthRule(method);
    assert.ok(rule.mode === "guarded" && rule.scope);
    assert.equal(rule.scope.field, field);
    assert.equal(rule.scope.of(create(method.input, request)), uid);
  });
}

test("a method whose registration says so authenticates its caller itself", () => {
  const desc = declareService({ methods: { Exchange: {} } });
  const exchange = () => ({});
  const settings = { exchange: { selfAuthenticating: true } };
  const [entry] = createMethodTable([{ desc, handlers: { exchange }, settings }]).values();
  assert.deepEqual(entry?.auth, { mode: "self" });
  const message = /has no \(chainguard\.annotations\.iam\) option/;
  assert.throws(() => createMethodTable([{ desc, handlers: { exchange } }]), message);
});

test("a method that authenticates its caller itself must declare no rule", () => {
  const desc = declareService({ methods: { Exchange: { iam: disabled } } });
  const settings = { exchange: { selfAuthenticating: true } };
  assert.throws(() => createMethodTable([{ desc, handlers: { exchange: () => ({}) }, settings }]), {
    name: "TypeError",
    message: "arbor.test.rpc.Service.Exchange authenticates its caller, but has an iam option",
  });
});

test("no other methods of the platform authenticate their callers themselves, or ignore unknown query parameters", () => {
  const services: readonly ServedService[] = [
    ...createPlatformServices({} as Parameters<typeof createPlatformServices>[0]),
    createSecurityTokenService({} as Parameters<typeof createSecurityTokenService>[0]),
    authV1({} as Parameters<typeof authV1>[0]),
  ];
  for (const setting of ["selfAuthenticating", "ignoreUnknownQuery"] as const) {
    const names = services.flatMap(({ desc, settings = {} }) =>
      Object.keys(settings).flatMap((name) => (settings[name]?.[setting] ? [`${desc.typeName}.${name}`] : [])),
    );
    assert.deepEqual(names, [
      "chainguard.platform.oidc.SecurityTokenService.exchange",
      "chainguard.platform.oidc.SecurityTokenService.exchangeRefreshToken",
      "chainguard.platform.auth.Auth.getHeadlessSession",
    ]);
  }
});

test("the table: path, access, event and handler of each method", () => {
  const desc = declareService({
    methods: {
      GetThing: { iam: disabled, read: true },
      MakeThing: { iam: disabled, event: "test.thing.made.v1" },
      DropThing: { iam: disabled },
    },
  });
  const handlers: Record<string, Handler> = { getThing: () => ({}), makeThing: () => ({}), dropThing: () => ({}) };
  assert.throws(() => createMethodTable([{ desc, handlers }]), {
    name: "TypeError",
    message: "arbor.test.rpc.Service.MakeThing has an event and no body",
  });
  const settings = { makeThing: { body: "none" } } as const;
  const rows = [...createMethodTable([{ desc, handlers, settings }])].map(([path, entry]) => {
    assert.equal(entry.path, path);
    assert.ok(entry.kind === "unary");
    return [path, entry.access, entry.auditType, entry.desc.name];
  });
  assert.deepEqual(rows, [
    ["/arbor.test.rpc.Service/GetThing", "read", "arbor.test.rpc.Service.GetThing", "GetThing"],
    ["/arbor.test.rpc.Service/MakeThing", "write", "test.thing.made.v1", "MakeThing"],
    ["/arbor.test.rpc.Service/DropThing", "write", "arbor.test.rpc.Service.DropThing", "DropThing"],
  ]);
});

test("the table: a method that streams its answers", () => {
  const desc = declareService({ methods: { Watch: { iam: disabled, streams: "answers" } } });
  const watch = async function* () {};
  const [entry] = createMethodTable([{ desc, handlers: { watch } }]).values();
  assert.deepEqual(entry, {
    kind: "server_streaming",
    desc: onlyMethod(desc),
    published: onlyMethod(desc),
    path: "/arbor.test.rpc.Service/Watch",
    auth: { mode: "public" },
    maxRequestBytes: 16 * 1024,
    handler: watch,
  });
});

for (const streams of ["requests", "both"] as const) {
  test(`a method that takes a stream is refused at boot: ${streams}`, () => {
    const desc = declareService({ methods: { Chat: { iam: disabled, streams } } });
    assert.throws(() => createMethodTable([{ desc, handlers: { chat: () => ({}) } }]), {
      name: "TypeError",
      message: "arbor.test.rpc.Service.Chat takes a stream, which the method table does not serve",
    });
  });
}

test("a method without a handler is refused at boot", () => {
  const desc = declareService({ methods: { GetThing: { iam: disabled } } });
  assert.throws(() => createMethodTable([{ desc, handlers: {} }]), {
    name: "TypeError",
    message: "rpc arbor.test.rpc.Service.GetThing has no handler",
  });
});

test("the groups service: who may call what, and where", () => {
  const rows = GroupsService.methods.map((method) => {
    const rule = readAuthRule(method);
    assert.ok(rule.mode === "guarded");
    return [method.name, rule.capabilities.map(({ name }) => name).join(), rule.scope?.field ?? "unscoped"];
  });
  assert.deepEqual(rows, [
    ["GetGroup", "groups.list", "uid"],
    ["DeleteGroup", "groups.delete", "uid"],
    ["ListGroups", "groups.list", "unscoped"],
    ["CreateGroup", "groups.create", "unscoped"],
    ["UpdateGroup", "groups.update", "group.uid"],
    ["LookupGroup", "", "unscoped"],
    ["RequestGroupAccess", "", "unscoped"],
    ["CheckEligibility", "", "unscoped"],
  ]);
});
