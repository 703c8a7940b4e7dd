// The protocol matrix: calls that change things, or try to.
import {
  expectNotFound,
  group,
  invalid,
  KIND,
  notPermitted,
  notPermittedField,
  ok,
  permissionDenied,
  precondition,
  tokenExpired,
  unauthenticated,
  VERIFIED,
} from "./expectations.js";
import type { MatrixCase } from "./matrix-case.js";

const PEOPLE_ONLY = "root groups are created by people only, who signed in at a login provider of the service";

const NAME_RULE = "name must match ^[a-z0-9 ._-]{1,}$";
const NO_UID = "must be a uid, such as the service assigns";
const expectGroup = (name: string, more?: object) => ok(group("<yard>/<new>", name, more));
const fresh = (name: string, more?: object) => ok(group("<fresh>", name, more));
const was = { description: "as it was" };
const notEmpty = (children: string) => precondition("RESOURCE_NOT_EMPTY", `cannot delete group with child ${children}`);

/** Creations, updates and deletions of groups. */
export const writes: readonly MatrixCase[] = [
  {
    name: "creates a group",
    method: "CreateGroup",
    request: { parent: "<yard>", group: { name: "core", description: "Kern – ü" } },
    expect: expectGroup("core", { description: "Kern – ü" }),
  },
  {
    name: "creates with nothing that callers do not set",
    method: "CreateGroup",
    request: {
      parent: "<yard>",
      group: { name: "core", uid: "<org>", verified: false, status: 3, resourceLimits: { repositories: 5 } },
    },
    expect: expectGroup("core"),
  },
  {
    name: "creates nothing with what the operator sets",
    method: "CreateGroup",
    request: { parent: "<yard>", group: { name: "core", verified: true, kind: 2 } },
    expect: notPermittedField(VERIFIED, KIND),
  },
  {
    name: "creates an organisation",
    method: "CreateGroup",
    as: "nobody",
    request: { group: { name: "acme.example" } },
    expect: ok(group("<new>", "acme.example")),
  },
  {
    name: "creates no organisation for a workload",
    method: "CreateGroup",
    as: "workload",
    request: { group: { name: "core" } },
    expect: notPermitted(PEOPLE_ONLY),
  },
  {
    name: "creates nothing without a name",
    method: "CreateGroup",
    request: { parent: "<yard>", group: {} },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "creates nothing without a group",
    method: "CreateGroup",
    request: { parent: "<yard>" },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "creates nothing with a wrong name",
    method: "CreateGroup",
    request: { parent: "<yard>", group: { name: "Core" } },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "names all fields that are wrong",
    method: "CreateGroup",
    request: { parent: "<yard>", group: { name: "", description: "a\tb" } },
    expect: invalid(["name", NAME_RULE], ["description", "description must not contain control characters"]),
  },
  {
    name: "creates nothing in no uid",
    method: "CreateGroup",
    request: { parent: "yard", group: { name: "core" } },
    expect: invalid(["parent", "parent must be the uid of a group"]),
  },
  {
    name: "creates nothing too deep",
    method: "CreateGroup",
    request: { parent: "<deep>", group: { name: "core" } },
    expect: invalid(["parent", "parent must lie less than 60 groups deep"]),
  },
  {
    name: "creates nothing in what is missing",
    method: "CreateGroup",
    request: { parent: "<ghost>", group: { name: "core" } },
    expect: expectNotFound("<ghost>"),
  },
  {
    name: "creates nothing in a foreign group",
    method: "CreateGroup",
    request: { parent: "<foreign>", group: { name: "core" } },
    expect: permissionDenied("groups.create at <foreign>"),
  },
  {
    name: "creates nothing in an unknown root",
    method: "CreateGroup",
    request: { parent: "<random>", group: { name: "core" } },
    expect: permissionDenied("groups.create at <random>"),
  },
  {
    name: "creates nothing as viewer, whatever the name",
    method: "CreateGroup",
    as: "viewer",
    request: { parent: "<shelf>", group: { name: "" } },
    expect: permissionDenied("groups.create at <shelf>"),
  },
  {
    name: "creates nothing without a token",
    method: "CreateGroup",
    as: "anonymous",
    request: { parent: "<yard>", group: {} },
    expect: unauthenticated(),
  },

  {
    name: "changes what is sent",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "after" } },
    expect: fresh("after", was),
  },
  {
    name: "changes all that is sent",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "after", description: "new" } },
    expect: fresh("after", { description: "new" }),
  },
  {
    name: "changes nothing when nothing is sent",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" } },
    expect: fresh("before", was),
  },
  {
    name: "tells empty from absent only where the protocol does",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", description: "" } },
    expect: fresh("before", was),
    expectRest: fresh("before"),
    why: "JSON tells an empty field from an absent one, and protobuf does not",
  },
  {
    name: "changes only what the mask names",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "NO", description: "new" }, updateMask: { paths: ["description"] } },
    expect: fresh("before", { description: "new" }),
  },
  {
    name: "changes what a list names",
    method: "UpdateGroup",
    request: {
      group: { uid: "<fresh>", name: "after", description: "new" },
      updateMask: { paths: ["name", "description"] },
    },
    expect: fresh("after", { description: "new" }),
  },
  {
    name: "clears what the mask names",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: { paths: ["description"] } },
    expect: fresh("before"),
  },
  {
    name: "clears no name",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: { paths: ["name"] } },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "replaces all with a star",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "after" }, updateMask: { paths: ["*"] } },
    expect: fresh("after"),
  },
  {
    name: "replaces nothing with less than is required",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: { paths: ["*"] } },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "lets a star stand alone",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "after" }, updateMask: { paths: ["*", "name"] } },
    expect: invalid(["updateMask", "updateMask: * must stand alone"]),
  },
  {
    name: "passes over what callers do not set",
    method: "UpdateGroup",
    request: {
      group: { uid: "<fresh>", status: 3, verified: false },
      updateMask: { paths: ["status", "verified", "kind", "uid", "update_time"] },
    },
    expect: fresh("before", was),
  },
  {
    name: "rejects what the operator sets",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", verified: true, kind: 2 }, updateMask: { paths: ["verified", "kind"] } },
    expect: notPermittedField(VERIFIED, KIND),
  },
  {
    name: "passes over what the operator sets outside the mask",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", verified: true, kind: 2 }, updateMask: { paths: ["uid"] } },
    expect: fresh("before", was),
  },
  {
    name: "knows no field it does not have",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: { paths: ["name", "colour"] } },
    expect: invalid(["updateMask", "updateMask: colour is not a field of a group"]),
  },
  {
    name: "knows nothing within a text",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>" }, updateMask: { paths: ["name.first"] } },
    expect: invalid(["updateMask", "updateMask: name.first is not a field of a group"]),
  },
  {
    name: "changes nothing to a wrong name",
    method: "UpdateGroup",
    request: { group: { uid: "<fresh>", name: "a/b" } },
    expect: invalid(["name", NAME_RULE]),
  },
  {
    name: "renames no verified root",
    method: "UpdateGroup",
    request: { group: { uid: "<org>", name: "other.example" } },
    expect: precondition("GROUP_VERIFIED", "cannot rename a verified group"),
  },
  {
    name: "changes nothing as nobody, whatever the name",
    method: "UpdateGroup",
    as: "nobody",
    request: { group: { uid: "<fresh>", name: "NO" } },
    expect: permissionDenied("groups.update at <fresh>"),
  },
  {
    name: "changes nothing of others",
    method: "UpdateGroup",
    request: { group: { uid: "<secret>", name: "mine" } },
    expect: permissionDenied("groups.update at <secret>"),
  },
  {
    name: "changes nothing that is missing",
    method: "UpdateGroup",
    request: { group: { uid: "<ghost>", name: "core" } },
    expect: expectNotFound("<ghost>"),
  },
  {
    name: "tells viewers nothing of what is missing",
    method: "UpdateGroup",
    as: "viewer",
    request: { group: { uid: "<ghost>", name: "core" } },
    expect: permissionDenied("groups.update at <ghost>"),
  },
  {
    name: "changes nothing by a wrong uid",
    method: "UpdateGroup",
    request: { group: { uid: "core", name: "core" } },
    expect: invalid(["group.uid", `group.uid ${NO_UID}`]),
  },
  {
    name: "changes nothing without a group",
    method: "UpdateGroup",
    request: {},
    expect: invalid(["group.uid", "group.uid is required"]),
    rest: "none",
    why: "without a uid there is no such path",
  },
  {
    name: "changes nothing with an old token",
    method: "UpdateGroup",
    as: "expired",
    request: { group: { uid: "<fresh>", name: "after" } },
    expect: tokenExpired(),
  },

  { name: "deletes a group", method: "DeleteGroup", request: { uid: "<fresh>" }, expect: ok({}) },
  {
    name: "deletes no group with groups in it",
    method: "DeleteGroup",
    request: { uid: "<shelf>" },
    expect: notEmpty("groups"),
  },
  {
    name: "deletes no group with identities in it",
    method: "DeleteGroup",
    request: { uid: "<staffed>" },
    expect: notEmpty("identities"),
  },
  {
    name: "deletes no group with roles in it",
    method: "DeleteGroup",
    request: { uid: "<roled>" },
    expect: notEmpty("roles"),
  },
  {
    name: "deletes no group with role bindings in it",
    method: "DeleteGroup",
    request: { uid: "<bound>" },
    expect: notEmpty("role bindings"),
  },
  {
    name: "deletes nothing that is missing",
    method: "DeleteGroup",
    request: { uid: "<ghost>" },
    expect: expectNotFound("<ghost>"),
  },
  {
    name: "deletes nothing as viewer",
    method: "DeleteGroup",
    as: "viewer",
    request: { uid: "<atlas>" },
    expect: permissionDenied("groups.delete at <atlas>"),
  },
  {
    name: "deletes nothing of others",
    method: "DeleteGroup",
    request: { uid: "<foreign>" },
    expect: permissionDenied("groups.delete at <foreign>"),
  },
  {
    name: "deletes nothing by a wrong uid",
    method: "DeleteGroup",
    request: { uid: "<org>/x" },
    expect: invalid(["uid", `uid ${NO_UID}`]),
  },
  {
    name: "deletes nothing without a token",
    method: "DeleteGroup",
    as: "anonymous",
    request: { uid: "<fresh>" },
    expect: unauthenticated(),
  },
];
