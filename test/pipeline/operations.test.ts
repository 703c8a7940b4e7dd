// Views: handlers that call those of another version in the same unit of work.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GroupsService as StableGroups } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { RolesService as StableRoles } from "#gen/chainguard/platform/iam/v2/roles_pb.js";
import { type Group, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.js";
import { serveAs } from "../../src/app/services.js";
import { ApiError, invalidArgument, notFound, notPermittedField } from "../../src/kernel/errors.js";
import type { UnaryCall } from "../../src/pipeline/call.js";
import { type Handlers, listInChunks, withPreparation } from "../../src/pipeline/handlers.js";
import { createMethodTable, serve } from "../../src/pipeline/method-table.js";
import { createOperations, renameErrorFields } from "../../src/pipeline/operations.js";

const answerNothing = () => ({});
const base: Handlers<typeof GroupsService> = {
  getGroup: ({ uid }) => ({ uid, name: "core" }),
  listGroups: answerNothing,
  createGroup: ({ parent, group }) => ({ uid: `${parent}/1`, name: group?.name ?? "" }),
  updateGroup: answerNothing,
  deleteGroup: answerNothing,
  lookupGroup: answerNothing,
  requestGroupAccess: answerNothing,
  checkEligibility: answerNothing,
};
const call = {} as UnaryCall;
const violationsOf = (error: unknown) => {
  assert.ok(error instanceof ApiError);
  const detail = error.details.find(({ desc }) => desc === BadRequestSchema);
  return create(BadRequestSchema, detail?.value ?? {}).fieldViolations.map(({ field, description }) => [
    field,
    description,
  ]);
};

describe("operations", () => {
  test("give messages of the service, whatever its handlers give", async () => {
    const operations = createOperations(serve(GroupsService, base));
    const made: Group = await operations.createGroup({ parent: "a", group: { name: "n" } }, call);
    assert.equal(made.$typeName, "chainguard.platform.iam.v2beta1.Group");
    assert.deepEqual([made.uid, made.name, made.resourceLimits], ["a/1", "n", {}]);
  });

  test("hand the call over as it is", async () => {
    let seen: UnaryCall | undefined;
    const getGroup: (typeof base)["getGroup"] = (_, its) => {
      seen = its;
      return {};
    };
    await createOperations(serve(GroupsService, { ...base, getGroup })).getGroup({ uid: "a" }, call);
    assert.equal(seen, call);
  });

  test("require what the service requires, in the names of the view", async () => {
    const operations = createOperations(serve(GroupsService, base), { uid: "id" });
    await assert.rejects(operations.getGroup({}, call), (error) => {
      assert.deepEqual(violationsOf(error), [["id", "id is required"]]);
      return true;
    });
  });

  test("do not run what prepares something outside the transaction", async () => {
    const getGroup = withPreparation({ prepare: async () => 1, handle: answerNothing });
    const operations = createOperations(serve(GroupsService, { ...base, getGroup }));
    await assert.rejects(operations.getGroup({ uid: "a" }, call), TypeError);
  });
});

describe("errors in the names of a view", () => {
  const names = { uid: "id", roleUid: "role", requests: "roleBindings", roleBinding: "" };
  for (const [violation, expectedField, expectedDescription] of [
    [{ field: "uid", rule: "must be a uid" }, "id", "id must be a uid"],
    [{ field: "name", rule: "is required" }, "name", "name is required"],
    [{ field: "role.uid", subject: "uid", rule: "is required" }, "role.id", "id is required"],
    [
      { field: "requests[3].roleBinding.roleUid", subject: "roleUid", rule: "is required" },
      "roleBindings[3].role",
      "role is required",
    ],
    [
      { field: "static", subject: "static.keys", rule: "or {}, {}", args: ["roleUid", "name"] },
      "static",
      "static.keys or role, name",
    ],
    [{ field: "uid", subject: "uid.part", rule: "must be {}", args: ["roleUid"] }, "id", "id.part must be role"],
    [{ field: "requests[1]", subject: "requests", rule: "must be new" }, "roleBindings[1]", "roleBindings must be new"],
    [{ field: "requests", rule: "must be at most 25" }, "roleBindings", "roleBindings must be at most 25"],
    // Words of a rule are no names, whatever they look like.
    [{ field: "description", subject: "", rule: "the roleUid is too long" }, "description", "the roleUid is too long"],
    [{ field: "name", rule: "must match {} or ^[a-z]{1,}$" }, "name", "name must match {} or ^[a-z]{1,}$"],
    [{ field: "toString", rule: "is required" }, "toString", "toString is required"],
    [{ field: "match", subject: "match.claims.uid", rule: "must be text" }, "match", "match.claims.uid must be text"],
    [{ field: "roleUid", subject: "roleUid.claims.uid", rule: "must be text" }, "role", "role.claims.uid must be text"],
    [
      { field: "match.claims.https://x..y/uid", subject: "uid", rule: "must be text" },
      "match.claims.https://x..y/uid",
      "uid must be text",
    ],
    [
      { field: "requests[1].claims.uid", subject: "uid", rule: "must be text" },
      "roleBindings[1].claims.uid",
      "uid must be text",
    ],
  ] as const) {
    test(expectedDescription, () => {
      const error = renameErrorFields(invalidArgument(violation), names, new Set(["claims"]));
      assert.deepEqual(violationsOf(error), [[expectedField, expectedDescription]]);
      assert.equal((error as Error).message, `Invalid argument: ${expectedField}: ${expectedDescription}`);
    });
  }

  test("of values that callers may not choose", () => {
    const error = renameErrorFields(notPermittedField({ field: "roleUid", rule: "is set by the operator" }), names);
    assert.equal((error as Error).message, "Permission denied: role: role is set by the operator");
  });

  test("leave every other error alone", () => {
    for (const error of [notFound({ displayName: "n", type: "t" }, "uid"), new TypeError("uid"), undefined, "uid"])
      assert.equal(renameErrorFields(error, names), error);
  });
});

const withoutBodies = {
  createGroup: { body: "none" },
  updateGroup: { body: "none" },
  deleteGroup: { body: "none" },
} as const;

describe("a service under its stable name", () => {
  test("has the paths of the stable one, and messages and handlers of the beta", () => {
    const beta = serve(GroupsService, base, withoutBodies);
    const table = createMethodTable([beta, serveAs(StableGroups, beta)]);
    for (const { name } of GroupsService.methods) {
      const [old, stable] = ["v2beta1", "v2"].map((v) =>
        table.get(`/chainguard.platform.iam.${v}.GroupsService/${name}`),
      );
      assert.ok(old && stable);
      assert.equal(stable.handler, old.handler);
      assert.equal(stable.desc.input, old.desc.input);
      assert.equal(stable.published.input.typeName, old.desc.input.typeName.replace("v2beta1", "v2"));
      assert.equal(stable.published.parent, StableGroups);
      assert.equal(old.published, old.desc);
    }
  });

  test("is refused at boot where the two differ", () => {
    assert.throws(() => serveAs(StableRoles, serve(GroupsService, base)), /is not in .*GroupsService/);
  });
});

describe("a list in chunks", () => {
  test("is refused at boot where the answer holds more than a list", () => {
    const listGroups = listInChunks(async () => ({ chunk: {}, next: undefined }));
    const served = serve(GroupsService, { ...base, listGroups }, withoutBodies);
    assert.throws(() => createMethodTable([served]), /has more than a list/);
  });
});
