// The protocol matrix: calls that change nothing.
import {
  expectNotFound,
  group,
  invalid,
  noPath,
  ok,
  page,
  permissionDenied,
  tokenExpired,
  unauthenticated,
  unimplemented,
} from "./expectations.js";
import type { MatrixCase } from "./matrix-case.js";

const atlas = group("<atlas>", "atlas", { description: "first of all" });
const birch = group("<birch>", "birch");
const cedar = group("<cedar>", "cedar");
const twig = group("<twig>", "atlas");
const shelf = group("<shelf>", "shelf");
const org = group("<org>", "acme.example", { verified: true, kind: "ORG_KIND_CUSTOMER" });

const ORDERS = `orderBy must be one of uid, name, created_at, updated_at, optionally followed by " asc" or " desc"`;
const NO_UID = "must be a uid, such as the service assigns";
const NO_ORGANISATION = "no verified organisation matches the caller's e-mail domain";
const onShelf = { uidp: { childrenOf: "<shelf>" }, orderBy: "name" };

/** Reads of groups and lists, and what tells people about their organisation. */
export const reads: readonly MatrixCase[] = [
  { name: "gets a group", method: "GetGroup", request: { uid: "<atlas>" }, expect: ok(atlas) },
  { name: "gets a verified root", method: "GetGroup", request: { uid: "<org>" }, expect: ok(org) },
  { name: "gets as viewer", method: "GetGroup", as: "viewer", request: { uid: "<twig>" }, expect: ok(twig) },
  {
    name: "gets no group outside the viewer's",
    method: "GetGroup",
    as: "viewer",
    request: { uid: "<yard>" },
    expect: permissionDenied("groups.list at <yard>"),
  },
  {
    name: "gets no group above the viewer's",
    method: "GetGroup",
    as: "viewer",
    request: { uid: "<org>" },
    expect: permissionDenied("groups.list at <org>"),
  },
  {
    name: "gets no foreign group",
    method: "GetGroup",
    request: { uid: "<secret>" },
    expect: permissionDenied("groups.list at <secret>"),
  },
  {
    name: "gets no unknown root",
    method: "GetGroup",
    request: { uid: "<random>" },
    expect: permissionDenied("groups.list at <random>"),
  },
  {
    name: "tells what is missing in an own group",
    method: "GetGroup",
    request: { uid: "<ghost>" },
    expect: expectNotFound("<ghost>"),
  },
  {
    name: "gets nothing by a wrong uid",
    method: "GetGroup",
    request: { uid: "atlas" },
    expect: invalid(["uid", `uid ${NO_UID}`]),
  },
  {
    name: "gets nothing by half a uid",
    method: "GetGroup",
    request: { uid: "<atlas>0" },
    expect: invalid(["uid", `uid ${NO_UID}`]),
  },
  {
    name: "gets nothing without a uid",
    method: "GetGroup",
    request: {},
    expect: invalid(["uid", "uid is required"]),
    expectRest: noPath("/iam/v2beta1/groups/, did you mean /iam/v2beta1/groups?"),
    why: "without its uid the path is another one",
  },
  {
    name: "gets nothing without a token",
    method: "GetGroup",
    as: "anonymous",
    request: { uid: "<atlas>" },
    expect: unauthenticated(),
  },
  {
    name: "gets nothing with a garbled token",
    method: "GetGroup",
    as: "garbled",
    request: { uid: "<atlas>" },
    expect: unauthenticated(),
  },
  {
    name: "gets nothing with an old token",
    method: "GetGroup",
    as: "expired",
    request: { uid: "<atlas>" },
    expect: tokenExpired(),
  },
  {
    name: "gets nothing as nobody any more",
    method: "GetGroup",
    as: "deleted",
    request: { uid: "<atlas>" },
    expect: unauthenticated(),
  },
  {
    name: "looks at the token before the uid",
    method: "GetGroup",
    as: "anonymous",
    request: { uid: "%" },
    expect: unauthenticated(),
  },

  {
    name: "lists what the viewer sees",
    method: "ListGroups",
    as: "viewer",
    request: { orderBy: "created_at", skip: 1 },
    expect: page(5, [atlas, cedar, birch, twig], { skipped: 1 }),
  },
  { name: "lists nothing for nobody", method: "ListGroups", as: "nobody", request: {}, expect: page(0, []) },
  { name: "lists children", method: "ListGroups", request: onShelf, expect: page(3, [atlas, birch, cedar]) },
  {
    name: "lists descendants",
    method: "ListGroups",
    request: { uidp: { descendantsOf: "<shelf>" }, orderBy: "created_at desc" },
    expect: page(4, [twig, birch, cedar, atlas]),
  },
  {
    name: "lists ancestors",
    method: "ListGroups",
    request: { uidp: { ancestorsOf: "<twig>" } },
    expect: page(3, [org, shelf, birch]),
  },
  {
    name: "lists by uid",
    method: "ListGroups",
    request: { uidp: { ids: ["<cedar>", "<atlas>", "<secret>"] }, orderBy: "name" },
    expect: page(2, [atlas, cedar]),
  },
  {
    name: "lists by name within a group",
    method: "ListGroups",
    request: { name: "atlas", uidp: { descendantsOf: "<shelf>" }, orderBy: "updated_at" },
    expect: page(2, [twig, atlas]),
  },
  { name: "lists roots", method: "ListGroups", request: { uidp: { inRoot: true } }, expect: page(1, [org]) },
  {
    name: "lists what is above all roots",
    method: "ListGroups",
    request: { uidp: { childrenOf: "/" } },
    expect: page(1, [org]),
  },
  {
    name: "lists nothing of others",
    method: "ListGroups",
    request: { uidp: { descendantsOf: "<foreign>" } },
    expect: page(0, []),
  },
  {
    name: "lists nothing of nothing",
    method: "ListGroups",
    request: { uidp: { descendantsOf: "<random>" } },
    expect: page(0, []),
  },
  {
    name: "lists a page",
    method: "ListGroups",
    request: { ...onShelf, pageSize: 2 },
    expect: page(3, [atlas, birch], { nextPageToken: "<token>" }),
  },
  {
    name: "goes on with a token of another protocol",
    method: "ListGroups",
    request: { ...onShelf, pageSize: 2, pageToken: "<page>" },
    expect: page(3, [cedar]),
  },
  {
    name: "skips past the end",
    method: "ListGroups",
    request: { ...onShelf, skip: 7 },
    expect: page(3, [], { skipped: 7 }),
  },
  {
    name: "lists no negative page",
    method: "ListGroups",
    request: { pageSize: -1 },
    expect: invalid(["pageSize", "pageSize must not be negative"]),
  },
  {
    name: "lists all that is wrong",
    method: "ListGroups",
    request: { pageSize: -1, skip: -2, orderBy: "age" },
    expect: invalid(
      ["pageSize", "pageSize must not be negative"],
      ["skip", "skip must not be negative"],
      ["orderBy", ORDERS],
    ),
  },
  {
    name: "lists in no order it does not know",
    method: "ListGroups",
    request: { orderBy: "name desc, uid" },
    expect: invalid(["orderBy", ORDERS]),
  },
  {
    name: "lists below no wildcard",
    method: "ListGroups",
    request: { uidp: { descendantsOf: "%" } },
    expect: invalid(["uidp.descendantsOf", `uidp.descendantsOf ${NO_UID}`]),
  },
  {
    name: "lists by no control character",
    method: "ListGroups",
    request: { name: "a\nb" },
    expect: invalid(["name", "name must not contain control characters"]),
  },
  {
    name: "goes on with no forged token",
    method: "ListGroups",
    request: { ...onShelf, pageToken: "Zm9yZ2Vk" },
    expect: invalid(["pageToken", "pageToken is not one this service made"]),
  },
  {
    name: "goes on with no token of another list",
    method: "ListGroups",
    request: { pageToken: "<page>" },
    expect: invalid(["pageToken", "pageToken belongs to a list with other filters or another order"]),
  },
  {
    name: "lists nothing without a token",
    method: "ListGroups",
    as: "anonymous",
    request: { pageSize: -1 },
    expect: unauthenticated(),
  },

  {
    name: "finds the organisation of an address",
    method: "LookupGroup",
    as: "member",
    request: {},
    expect: ok({ group: org }),
  },
  {
    name: "finds it whatever the case of the address",
    method: "LookupGroup",
    as: "requester",
    request: {},
    expect: ok({ group: org }),
  },
  {
    name: "finds none for an address of anybody",
    method: "LookupGroup",
    as: "gmail",
    request: {},
    expect: expectNotFound("", NO_ORGANISATION),
  },
  {
    name: "finds none that is not verified",
    method: "LookupGroup",
    as: "stranger",
    request: {},
    expect: expectNotFound("", NO_ORGANISATION),
  },
  {
    name: "finds none without an address",
    method: "LookupGroup",
    as: "nobody",
    request: {},
    expect: expectNotFound("", NO_ORGANISATION),
  },
  {
    name: "finds none without a token",
    method: "LookupGroup",
    as: "anonymous",
    request: {},
    expect: unauthenticated(),
  },
  { name: "says who may look", method: "CheckEligibility", as: "member", request: {}, expect: ok({ eligible: true }) },
  { name: "says who may not look", method: "CheckEligibility", as: "gmail", request: {}, expect: ok({}) },
  {
    name: "says nothing without a token",
    method: "CheckEligibility",
    as: "garbled",
    request: {},
    expect: unauthenticated(),
  },
  {
    name: "has no method it does not have",
    method: "MergeGroups",
    request: {},
    expect: unimplemented("method: no such method /chainguard.platform.iam.v2beta1.GroupsService/MergeGroups"),
    rest: { method: "PUT", path: "/iam/v2beta1/groups" },
    expectRest: unimplemented("method: PUT is not among GET, HEAD, OPTIONS"),
    why: "methods have no names, so what is not served is an HTTP method",
    status: 405,
  },
];
