// What docs/api-rules.md says about role bindings.
import { absent, denial, each, invalid, precondition, type Rule, rejects, type Step } from "./rule.js";

const TIME = /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;

const binds: Step = {
  call: "CreateRoleBinding",
  request: { parent: "<fresh>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" } },
  expect: {},
  keep: { made: "uid" },
};

const item = { identityUid: "<freshIdentity>" };

const managed = precondition(
  "BINDING_MANAGED",
  /^cannot change role binding \S+: the directory of identity provider \S+ /,
);

/** Role bindings. */
export const roleBindings: readonly Rule[] = [
  {
    anchor: "role-bindings",
    says: "a new binding shows identity, group and role with their fields",
    call: "CreateRoleBinding",
    request: { parent: "<fresh>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>" } },
    expect: {
      result: {
        uid: /^<fresh>\/[0-9a-f]{16}$/,
        identity: {
          uid: "<freshIdentity>",
          name: "identity",
          description: "",
          subject: "fresh",
          issuer: "<workloads>",
        },
        group: { uid: "<fresh>", name: "before", description: "as it was" },
        role: { uid: "<viewerRole>", name: "viewer", description: /\(built-in\)$/ },
        createTime: TIME,
        updateTime: absent,
        managedBy: "MANAGED_BY_MANUAL",
      },
    },
  },
  {
    anchor: "role-bindings",
    says: "over REST the fields of identity, group and role are texts, and there is no updateTime",
    http: "GET /iam/v2beta1/roleBindings/<roleBinding>",
    expect: {
      json: {
        identity: { uid: "<identity>", name: "one", description: "one", subject: "one", issuer: /^https/ },
        group: { uid: "<full>", name: "full" },
        role: { uid: "<role>", name: "one", description: "one" },
        createTime: /\.000Z$/,
        updateTime: absent,
        identityUid: absent,
        roleUid: absent,
      },
    },
  },
  {
    anchor: "role-bindings",
    says: "the empty texts of an identity are printed over REST, but for its e-mail address",
    steps: [
      binds,
      {
        http: "GET /iam/v2beta1/roleBindings/<made>",
        expect: { json: { identity: { description: "", email: absent } } },
      },
    ],
    over: ["REST"],
  },
  {
    anchor: "role-bindings",
    says: "a list has the same form",
    call: "ListRoleBindings",
    request: { group: "<full>" },
    expect: {
      result: {
        roleBindings: [
          {
            uid: "<roleBinding>",
            identity: { uid: "<identity>", name: "one" },
            group: { uid: "<full>", name: "full" },
            role: { uid: "<role>", name: "one" },
            createTime: /Z$/,
          },
        ],
        totalCount: "1",
      },
    },
  },
  ...Object.entries<readonly [binding: object, ...violations: readonly (readonly [string, string])[]]>({
    nothing: [{}, ["identityUid", "identityUid is required"], ["roleUid", "roleUid is required"]],
    "no identity": [{ roleUid: "<viewerRole>" }, ["identityUid", "identityUid is required"]],
    "no role": [{ identityUid: "<freshIdentity>" }, ["roleUid", "roleUid is required"]],
    "what is no uid": [
      { identityUid: "me", roleUid: "viewer" },
      ["identityUid", "identityUid must be a uid, such as the service assigns"],
      ["roleUid", "roleUid must be a uid, such as the service assigns"],
    ],
  }).map(([what, [roleBinding, ...violations]]) =>
    rejects(`a binding of ${what} is rejected`, {
      ...{
        anchor: "role-bindings",
        call: "CreateRoleBinding",
        request: { parent: "<fresh>", roleBinding },
        violations,
      },
    }),
  ),
  ...Object.entries<readonly [batch: object, field: string, rule: string]>({
    nothing: [{}, "requests", "requests is required"],
    "no parent": [{ parent: "", requests: [{ roleBinding: item }] }, "parent", "parent is required"],
    "more than 25": [
      { requests: Array.from({ length: 26 }, () => ({ roleBinding: item })), roleUid: "<viewerRole>" },
      ...(["requests", "requests must be at most 25"] as const),
    ],
    "an item with another parent": [
      { requests: [{ roleBinding: item, parent: "x" }], roleUid: "<viewerRole>" },
      ...(["requests[0].parent", "parent must be empty or that of the batch"] as const),
    ],
    "an item with another role": [
      {
        requests: [{ roleBinding: item }, { roleBinding: { ...item, roleUid: "<editorRole>" } }],
        roleUid: "<viewerRole>",
      },
      ...(["requests[1].roleBinding.roleUid", "roleUid must be empty or that of the batch"] as const),
    ],
    "an item without a role": [
      { requests: [{ roleBinding: item }] },
      ...(["requests[0].roleBinding.roleUid", "roleUid is required"] as const),
    ],
    "an item without an identity": [
      { requests: [{ roleBinding: item }, {}], roleUid: "<viewerRole>" },
      ...(["requests[1].roleBinding.identityUid", "identityUid is required"] as const),
    ],
  }).map(([what, [batch, field, rule]]): Rule => {
    const row = rejects(`a batch of ${what} is rejected as a whole`, {
      anchor: "role-bindings",
      call: "BatchCreateRoleBindings",
      request: { parent: "<fresh>", ...batch },
      violations: [[field, rule]],
    });
    const none = { call: "ListRoleBindings", request: { group: "<fresh>" }, expect: { result: { roleBindings: [] } } };
    return { anchor: row.anchor, says: row.says, steps: [row as Step, none] };
  }),
  {
    anchor: "role-bindings",
    says: "a binding grants the role in the group and its descendants, from the next call on",
    steps: [
      {
        call: "CreateGroup",
        request: { parent: "<fresh>", group: { name: "child" } },
        expect: {},
        keep: { child: "uid" },
      },
      {
        call: "GetGroup",
        as: "freshPerson",
        request: { uid: "<child>" },
        expect: denial("groups.list at <child>"),
      },
      {
        call: "CreateRoleBinding",
        request: { parent: "<fresh>", roleBinding: { identityUid: "<freshPerson>", roleUid: "<viewerRole>" } },
        expect: {},
      },
      { call: "GetGroup", as: "freshPerson", request: { uid: "<child>" }, expect: { result: { uid: "<child>" } } },
      {
        call: "GetGroup",
        as: "freshPerson",
        request: { uid: "<org>" },
        expect: denial("groups.list at <org>"),
      },
    ],
  },
  {
    anchor: "role-bindings",
    says: "creating a binding that exists returns it",
    steps: [binds, { ...binds, expect: { result: { uid: "<made>" } } }],
  },
  {
    anchor: "role-bindings",
    says: "a batch creates up to 25",
    call: "BatchCreateRoleBindings",
    request: {
      parent: "<fresh>",
      requests: ["<viewerRole>", "<editorRole>"].map((roleUid) => ({
        roleBinding: { identityUid: "<freshIdentity>", roleUid },
      })),
    },
    expect: { result: { roleBindings: each({ uid: /^<fresh>\// }, 2) } },
  },
  {
    anchor: "role-bindings",
    says: "nobody binds a role whose capabilities it does not hold",
    call: "CreateRoleBinding",
    as: "editor",
    request: { parent: "<fresh>", roleBinding: { identityUid: "<freshIdentity>", roleUid: "<ownerRole>" } },
    expect: { code: "PERMISSION_DENIED" },
  },
  {
    anchor: "role-bindings",
    says: "the name of a person who has not joined is not shown",
    call: "CreateRoleBinding",
    request: { parent: "<fresh>", roleBinding: { identityUid: "<freshPerson>", roleUid: "<viewerRole>" } },
    expect: { result: { identity: { uid: "<freshPerson>", name: "", email: "" } } },
  },
  {
    anchor: "role-bindings",
    says: "a binding that a directory manages names its provider",
    call: "ListRoleBindings",
    as: "freshOwner",
    made: ["<freshManagedBinding>"],
    request: { uidp: { ids: ["<freshManagedBinding>"] } },
    expect: { result: { roleBindings: [{ managedBy: "MANAGED_BY_SCIM", managedByUidp: "<freshDirectory>" }] } },
  },
  {
    anchor: "role-bindings",
    says: "over REST a binding of callers names no provider",
    steps: [binds, { http: "GET /iam/v2/roleBindings/<made>", expect: { json: { managedByUidp: absent } } }],
    over: ["REST"],
  },
  ...["iam.v2beta1", "iam.v2"].map(
    (version): Rule => ({
      anchor: "role-bindings",
      says: `a binding that a directory manages is neither changed nor deleted by ${version}`,
      steps: [
        {
          call: `${version}.RoleBindingsService.UpdateRoleBinding`,
          as: "freshOwner",
          request: { roleBinding: { uid: "<freshManagedBinding>", roleUid: "<editorRole>" }, updateMask: "roleUid" },
          expect: managed,
        },
        {
          call: `${version}.RoleBindingsService.DeleteRoleBinding`,
          as: "freshOwner",
          request: { uid: "<freshManagedBinding>" },
          expect: managed,
        },
      ],
    }),
  ),
  {
    anchor: "role-bindings",
    says: "a binding that a directory manages is neither changed nor deleted by version 1",
    steps: [
      {
        call: "iam.RoleBindings.Update",
        as: "freshOwner",
        request: { id: "<freshManagedBinding>", identity: "<freshOwner>", role: "<editorRole>" },
        expect: managed,
      },
      {
        call: "iam.RoleBindings.Delete",
        as: "freshOwner",
        request: { id: "<freshManagedBinding>" },
        expect: managed,
      },
    ],
  },
  {
    anchor: "role-bindings",
    says: "a pending binding counts for calls that name the group, and not for lists",
    shownBy: "test/iam/pending-bindings.test.ts",
    test: "is pending, grants its role at its group, and is in no list over all groups",
  },
  {
    anchor: "ends-of-role-bindings",
    says: "a binding with an end is created in one call, and listed with it",
    steps: [
      {
        http: "POST /bindings/v1/temporaryBindings/<fresh>",
        body: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>", endTime: "2999-01-01T00:00:00Z" },
        expect: { json: { uid: /^<fresh>\//, roleUid: "<viewerRole>", endTime: "2999-01-01T00:00:00.000Z" } },
        keep: { made: "uid" },
      },
      {
        http: "GET /bindings/v1/temporaryBindings?group=<fresh>",
        expect: { json: { bindings: [{ uid: "<made>", endTime: "2999-01-01T00:00:00.000Z" }], totalCount: "1" } },
      },
      { call: "GetRoleBinding", request: { uid: "<made>" }, expect: { result: { uid: "<made>" } } },
    ],
    over: ["REST"],
  },
  {
    anchor: "ends-of-role-bindings",
    says: "SetBindingEnd sets and removes the end of any role binding",
    steps: [
      binds,
      {
        http: "POST /bindings/v1/temporaryBindings/<made>:setEnd",
        body: { endTime: "2999-01-01T00:00:00Z" },
        expect: { json: { uid: "<made>", endTime: "2999-01-01T00:00:00.000Z" } },
      },
      {
        http: "POST /bindings/v1/temporaryBindings/<made>:setEnd",
        body: {},
        expect: { json: { uid: "<made>", endTime: absent } },
      },
    ],
    over: ["REST"],
  },
  {
    anchor: "ends-of-role-bindings",
    says: "an end is in the future",
    http: "POST /bindings/v1/temporaryBindings/<fresh>",
    body: { identityUid: "<freshIdentity>", roleUid: "<viewerRole>", endTime: "2020-01-01T00:00:00Z" },
    expect: invalid(["endTime", "endTime must be in the future, and at most in the year 9999"]),
  },
  ...(
    [
      [
        "from its end on a binding grants nothing",
        "grants its role until its end on every protocol, and nothing from then on",
      ],
      ["and is neither shown nor listed", "is neither shown nor listed from its end on, in any version"],
      [
        "a binding that has ended is deleted, with its event",
        "is deleted by the sweep with its event, so that the clock may step back",
      ],
      [
        "a binding that is created in the place of one that has ended is a new one",
        "gives way to a new one, also where several are created at once",
      ],
      ["who may change bindings may end them sooner, not later", "needs the rights that methods of role bindings need"],
      [
        "a creation does not change another end",
        "is the same when a creation is repeated, and no creation shortens another binding",
      ],
      [
        "CreateRoleBinding removes an end, UpdateRoleBinding keeps it",
        "is removed by a creation, and kept by an update, in each version",
      ],
      ["an owner whose binding ends is none to be left with", "is none that an organisation may be left with"],
      [
        "no end is set while older servers may run",
        "cannot be set while servers of older versions may use the database",
      ],
    ] as const
  ).map(
    ([says, test]): Rule => ({
      anchor: "ends-of-role-bindings",
      says,
      shownBy: "test/iam/temporary-bindings.test.ts",
      test,
    }),
  ),
];
