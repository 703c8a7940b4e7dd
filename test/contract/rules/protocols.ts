// What docs/api-rules.md says about the audit log, events, the form of REST, streams, health and limits.
import { absent, invalid, type Rule, type Step } from "./rule.js";

const TYPE = "dev.chainguard.api.iam.group";

const grant = { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" };

/** The audit log and events. */
const events: readonly Rule[] = [
  {
    anchor: "audit",
    says: "a successful change leaves a row with its type and its resource",
    call: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "after" } },
    expect: { audit: { eventType: `${TYPE}.updated.v1`, resource: "<fresh>" } },
  },
  {
    anchor: "audit",
    says: "so does a deletion",
    call: "DeleteGroup",
    request: { uid: "<fresh>" },
    expect: { audit: { eventType: `${TYPE}.deleted.v1`, resource: "<fresh>" } },
  },
  {
    anchor: "audit",
    says: "a change that is refused leaves none",
    steps: [
      {
        call: "UpdateGroup",
        request: { group: { uid: "<fresh>", name: "after" } },
        expect: { audit: { eventType: `${TYPE}.updated.v1`, resource: "<fresh>" } },
      },
      {
        call: "UpdateGroup",
        request: { group: { uid: "<freshOther>", name: "NO" } },
        expect: { code: "INVALID_ARGUMENT", audit: { eventType: `${TYPE}.updated.v1`, resource: "<fresh>" } },
      },
    ],
  },
  {
    anchor: "audit",
    says: "a read leaves none",
    steps: [
      {
        call: "UpdateGroup",
        request: { group: { uid: "<fresh>", name: "after" } },
        expect: {},
      },
      {
        call: "GetGroup",
        request: { uid: "<freshOther>" },
        expect: { audit: { eventType: `${TYPE}.updated.v1`, resource: "<fresh>" } },
      },
    ],
  },
  {
    anchor: "audit",
    says: "a call that changes nothing leaves none",
    steps: [
      {
        call: "CreateRoleBinding",
        request: { parent: "<fresh>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" } },
        expect: {},
        keep: { made: "uid" },
      },
      { call: "UpdateGroup", request: { group: { uid: "<fresh>", name: "after" } }, expect: {} },
      {
        call: "CreateRoleBinding",
        request: { parent: "<fresh>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" } },
        expect: { result: { uid: "<made>" }, audit: { eventType: `${TYPE}.updated.v1`, resource: "<fresh>" } },
      },
    ],
  },
  ...Object.entries({
    BatchCreateRoleBindings: {
      parent: "<fresh>",
      requests: [{ roleBinding: grant }, { roleBinding: { ...grant, roleUid: "<editorRole>" } }],
    },
    "iam.RoleBindings.Create": {
      parent: "<fresh>",
      roleBinding: { identity: "<freshIdentity>", role: "<viewerRole>" },
    },
    "iam.RoleBindings.CreateBatch": {
      parent: "<fresh>",
      roleBindings: ["<viewerRole>", "<editorRole>"].map((role) => ({ identity: "<freshIdentity>", role })),
    },
    AcceptTerms: { group: "<fresh>", documentIds: ["eula"] },
    CreateTag: { parent: "<freshRepo>", tag: { name: "latest", digest: "<digest>" } },
    DeleteRoleBinding: { uid: "<freshBinding>" },
  }).map(
    ([call, request]): Rule => ({
      anchor: "audit",
      says: `nor does ${call} the second time`,
      steps: [
        { call, request, expect: {} },
        { call: "UpdateGroup", request: { group: { uid: "<freshOther>", name: "after" } }, expect: {} },
        { call, request, expect: { audit: { eventType: `${TYPE}.updated.v1`, resource: "<freshOther>" } } },
      ],
    }),
  ),
  {
    anchor: "audit",
    says: "bodies are for those who may list the kind at the subject",
    shownBy: "test/audit/bodies-suite.ts",
    test: "a body is shown to those who may list the kind at the subject, and to nobody else",
  },
  {
    anchor: "audit",
    says: "rows are sealed into a chain for each organisation",
    shownBy: "test/audit/sealer.test.ts",
    test: "gives each organisation, and what belongs to none, a chain in the order of the rows",
  },
  {
    anchor: "audit",
    says: "events are for those who may list role bindings at their scope",
    shownBy: "test/contract/audit-access.test.ts",
    test: "are for those who may list role bindings at the scope",
  },
  {
    anchor: "audit",
    says: "the scope and its descendants are shown, and nothing else",
    shownBy: "test/audit/api/isolation-suite.ts",
    test: "is in no answer to * random filters, by any protocol",
  },
  {
    anchor: "audit",
    says: "an event of others and one that does not exist give the same answer",
    shownBy: "test/audit/api/isolation-suite.ts",
    test: "has no ids that differ from those of missing events",
  },
  {
    anchor: "audit",
    says: "address and token id are shown to those who may create role bindings at the subject",
    shownBy: "test/audit/api/events-suite.ts",
    test: "show address and token to those alone who may create role bindings at the subject",
  },
  {
    anchor: "audit",
    says: "filters that no index answers need a time",
    shownBy: "test/audit/api/events-suite.ts",
    test: "need a time where no index answers",
  },
  {
    anchor: "events",
    says: "a subscription is stored",
    steps: [
      {
        call: "CreateSubscription",
        request: { parent: "<fresh>", subscription: { sink: "https://sink.example/events" } },
        expect: { result: { uid: /^<fresh>\//, sink: "https://sink.example/events" } },
        keep: { made: "uid" },
      },
      { call: "DeleteSubscription", request: { uid: "<made>" }, expect: { text: "" } },
    ],
  },
  {
    anchor: "events",
    says: "reads of the delivery need the right to list subscriptions, changes the right to create them",
    shownBy: "test/events/events-api.test.ts",
    test: "are those of lists for reads and of creations for changes, at the group, over every protocol",
  },
  {
    anchor: "events",
    says: "suspending what is suspended changes nothing",
    shownBy: "test/events/events-api.test.ts",
    test: "is live, is suspended and resumed, and leaves a row in the audit log for each change",
  },
  {
    anchor: "events",
    says: "redelivery needs exactly one of an id and a time",
    shownBy: "test/events/events-api.test.ts",
    test: "are delivered again one by one, and none of another subscription",
  },
  {
    anchor: "events",
    says: "the stream shows an event to those who may list its kind at its subject",
    shownBy: "test/events/events-api.test.ts",
    test: "shows each row to those alone who may list its kind at its subject",
  },
];

/** The form of REST. */
const transcoding: readonly Rule[] = [
  {
    anchor: "transcoding",
    says: "a request may use the spelling of the proto",
    http: "POST /iam/v2beta1/identities/<fresh>",
    body: { name: "bot", claim_match: { issuer: "https://issuer.example", subject_pattern: "s.*" } },
    expect: { json: { claimMatch: { subjectPattern: "s.*" }, claim_match: absent } },
  },
  {
    anchor: "transcoding",
    says: "64-bit integers are texts, and 32-bit integers numbers",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<cedar>&skip=3",
    expect: { text: '{"groups":[],"totalCount":"0","skipped":3}' },
  },
  {
    anchor: "transcoding",
    says: "a resource has its empty fields; messages that are not set are absent",
    http: "GET /registry/v2beta1/repos/<freshPlainRepo>",
    expect: {
      json: {
        uid: "<freshPlainRepo>",
        description: "",
        bundles: [],
        aliases: [],
        activeTags: [],
        sync_config: absent,
        syncConfig: absent,
        customOverlay: absent,
      },
    },
  },
  {
    anchor: "transcoding",
    says: "of version 1 this includes the empty fields of identities",
    http: "GET /iam/v1/identities?id=<ci>",
    expect: { json: { items: [{ claimMatch: { subject: "ci", claims: {}, claimPatterns: {} } }] } },
  },
  {
    anchor: "transcoding",
    says: "empty fields are printed at every depth",
    http: "GET /registry/v2beta1/repos/<repo>",
    expect: { json: { customOverlay: { environment: { one: "one" }, annotations: {} } } },
  },
  {
    anchor: "transcoding",
    says: "an answer that is Empty is zero bytes for a deletion alone",
    http: "POST /iam/v2beta1/externalGroupRoleMappings:batchDelete",
    body: { parent: "<identityProvider>", names: [] },
    expect: { code: "INVALID_ARGUMENT" },
  },
  {
    anchor: "transcoding",
    says: "a body is JSON, and nothing else",
    http: "POST /iam/v2beta1/groups/<fresh>",
    headers: { "content-type": "text/plain" },
    body: '{"name":"core"}',
    expect: { code: "INVALID_ARGUMENT", status: 415 },
  },
  {
    anchor: "transcoding",
    says: "a key that is there twice is refused",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: '{"name":"core","name":"other"}',
    expect: invalid(["name", /./]),
  },
  {
    anchor: "transcoding",
    says: "a field has one value: the path's",
    http: "PATCH /iam/v2beta1/groups/<fresh>",
    body: { uid: "<org>", name: "after" },
    expect: invalid(["uid", "uid is set by the path, the body must not say otherwise"]),
  },
  {
    anchor: "transcoding",
    says: "a path that ends where a uid should be is none",
    http: "GET /iam/v2beta1/groups/",
    expect: { code: "NOT_FOUND", message: /^Not found: path: / },
  },
];

const grantsNothing: Step = {
  call: "GetGroup",
  request: { uid: "<shelf>" },
  expect: { result: { uid: "<shelf>" } },
};

/** Streams, health and limits. */
const running: readonly Rule[] = [
  {
    anchor: "streams",
    says: "an error at the end of a stream keeps its text over every protocol",
    shownBy: "test/transport/streams.test.ts",
    test: "*: an error at the end of a stream keeps its text",
  },
  {
    anchor: "streams",
    says: "an error before the first message has its HTTP status",
    shownBy: "test/transport/rest/stream.test.ts",
    test: "*: an error before the first answer is answered like any other",
  },
  {
    anchor: "streams",
    says: "a later error is the last line, and the connection is cut",
    shownBy: "test/transport/rest/stream.test.ts",
    test: "*: a stream that fails later is cut off after its error",
  },
  {
    anchor: "streams",
    says: "Accept decides between lines and Server-Sent Events",
    shownBy: "test/transport/rest/stream.test.ts",
    test: "accept *",
  },
  ...["/healthz", "/readyz"].map(
    (path): Rule => ({
      anchor: "health",
      says: `GET ${path} answers without a token`,
      http: `GET ${path}`,
      as: "anonymous",
      expect: { status: 200 },
    }),
  ),
  {
    anchor: "health",
    says: "gRPC clients ask grpc.health.v1.Health",
    shownBy: "test/transport/services/health-reflection.test.ts",
    test: "health checks the service as a whole and each RPC service, without a token",
  },
  {
    anchor: "health",
    says: "Watch says what is, and goes on",
    shownBy: "test/transport/services/health-reflection.test.ts",
    test: "health watch says what is and stays open",
  },
  {
    anchor: "health",
    says: "a service that stops says so, and its watches end",
    shownBy: "test/transport/services/health-probe.test.ts",
    test: "says so to all who can still ask, finishes what was begun, and waits for no watcher",
  },
  {
    anchor: "limits",
    says: "a body has at most 256 KiB",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: { name: "core", description: "x".repeat(262_144) },
    expect: { code: "RESOURCE_EXHAUSTED", status: 413 },
  },
  {
    anchor: "limits",
    says: "a body of a little less is read, and judged by its values",
    http: "POST /iam/v2beta1/groups/<fresh>",
    body: { name: "core", description: "x".repeat(262_000) },
    expect: invalid(["description", "description must be at most 512 characters"]),
  },
  {
    anchor: "limits",
    says: "every method has its limit, and no more is read before the token",
    shownBy: "test/contract/request-sizes.test.ts",
    test: "* takes * bytes and not one more",
  },
  {
    anchor: "limits",
    says: "groups lie at most 60 deep",
    call: "CreateGroup",
    request: { parent: "<deep>", group: { name: "core" } },
    expect: invalid(["parent", "parent must lie less than 60 groups deep"]),
  },
  {
    anchor: "limits",
    says: "a hundred calls in a row are not limited",
    steps: Array.from({ length: 100 }, () => grantsNothing),
    over: ["REST"],
  },
  {
    anchor: "limits",
    says: "quotas of an organisation are RESOURCE_EXHAUSTED with QuotaFailure",
    shownBy: "test/contract/quota-operations.test.ts",
    test: "no operation adds anything, and those that would are refused as over quota",
  },
];

/** All of these. */
export const protocols: readonly Rule[] = [...events, ...transcoding, ...running];
