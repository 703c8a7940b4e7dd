// What docs/api-rules.md says about the order and the filters of lists.
import { invalid, type Rule, type Step } from "./rule.js";

const below = (group: string) => ({ uidp: { descendantsOf: `<${group}>` } });
const groupsNamed = (...names: readonly string[]) => names.map((name) => ({ uid: `<${name}>` }));
const NO_UID = /must be a uid/;

const byCreation = ["atlas", "cedar", "birch", "twig"] as const;

function order(says: string, orderBy: string, ...names: readonly string[]): Rule {
  return {
    anchor: "ordering",
    says,
    call: "ListGroups",
    request: { ...below("shelf"), orderBy },
    expect: { result: { groups: groupsNamed(...names), totalCount: "4" } },
  };
}

const WRONG_ORDER = invalid([/^order_?[bB]y$/, /must be one of uid, name, created_at, updated_at/]);

/** Ordering. */
const orders: readonly Rule[] = [
  order(
    "lists are in the order of uids by default: a group before its descendants",
    "",
    "atlas",
    "birch",
    "twig",
    "cedar",
  ),
  order("a field alone is ascending", "created_at", ...byCreation),
  order("asc is ascending", "created_at asc", ...byCreation),
  order("desc is descending", "created_at desc", ...byCreation.slice().reverse()),
  order("name orders by name, and equal names by uid", "name", "atlas", "twig", "birch", "cedar"),
  order("descending, equal names are in the descending order of uids", "name desc", "cedar", "birch", "twig", "atlas"),
  order("updated_at orders by the last change", "updated_at", "cedar", "birch", "twig", "atlas"),
  order("create_time is another name for created_at", "create_time", ...byCreation),
  order("createTime is another name for created_at", "createTime desc", ...byCreation.slice().reverse()),
  order("uid may be named", "uid desc", "cedar", "twig", "birch", "atlas"),
  {
    anchor: "ordering",
    says: "in a query the space is %20",
    http: "GET /iam/v2beta1/groups?uidp.descendants_of=<shelf>&order_by=created_at%20desc",
    expect: { json: { groups: groupsNamed("twig", "birch", "cedar", "atlas") } },
  },
  {
    anchor: "ordering",
    says: "in a query the space may be +",
    http: "GET /iam/v2beta1/groups?uidp.descendants_of=<shelf>&orderBy=created_at+desc",
    expect: { json: { groups: groupsNamed("twig", "birch", "cedar", "atlas") } },
  },
  order("further spaces mean nothing", "  created_at   desc ", ...byCreation.slice().reverse()),
  order("an order of spaces alone is none", "   ", "atlas", "birch", "twig", "cedar"),
  ...["description", "name up", "name, uid", "-name", "name\tdesc", "name desc desc"].map(
    (orderBy): Rule => ({
      anchor: "ordering",
      says: `"${orderBy}" is refused`,
      call: "ListGroups",
      request: { orderBy },
      expect: WRONG_ORDER,
    }),
  ),
  ...["Groups", "Identities", "Roles", "IdentityProviders", "Repos"].flatMap((plural) =>
    ["uid", "name", "created_at", "updated_at"].map(
      (field): Rule => ({
        anchor: "ordering",
        says: `List${plural} knows the order ${field}`,
        call: `List${plural}`,
        over: ["gRPC"],
        request: { orderBy: `${field} desc`, pageSize: 1 },
        expect: {},
      }),
    ),
  ),
  ...Object.entries({
    ListAccountAssociations: ["group", "uid", "name", "created_at", "updated_at"],
    ListRoleBindings: ["uid", "created_at"],
    ListExternalGroupRoleMappings: ["uid", "created_at"],
    "events.v2beta1.SubscriptionsService.ListSubscriptions": ["uid", "created_at"],
    ListGroupInvites: ["uid", "created_at"],
    ListTags: ["uid", "name", "updated_at"],
    ListAdvisories: ["uid", "created_at", "updated_at"],
  }).map(
    ([call, fields]): Rule => ({
      anchor: "ordering",
      says: `${call.replace(/.*\./, "")} knows ${fields.join(", ")} and no other`,
      steps: [
        ...fields.map((field): Step => ({ call, request: { orderBy: field, pageSize: 1 }, expect: {} })),
        {
          call,
          request: { orderBy: "description" },
          expect: invalid([/^order_?[bB]y$/, new RegExp(fields.join(", "))]),
        },
      ],
    }),
  ),
  {
    anchor: "ordering",
    says: "invites are the newest first by default",
    steps: [
      ...["first", "second"].map(
        (name, i): Step => ({
          call: "CreateGroupInvite",
          laterMs: i * 60_000,
          request: { parent: "<fresh>", groupInvite: { roleUid: "<viewerRole>", ttl: "7200s" } },
          expect: {},
          keep: { [name]: "uid" },
        }),
      ),
      {
        call: "ListGroupInvites",
        request: below("fresh"),
        expect: { result: { groupInvites: groupsNamed("second", "first") } },
      },
    ],
  },
];

function filter(says: string, uidp: object, ...names: readonly string[]): Rule {
  return {
    anchor: "filters",
    says,
    call: "ListGroups",
    request: { uidp, orderBy: "uid" },
    expect: { result: { groups: groupsNamed(...names), totalCount: String(names.length) } },
  };
}

/** Filters. */
const selections: readonly Rule[] = [
  filter(
    "descendants_of selects at any depth, without the group itself",
    { descendantsOf: "<shelf>" },
    "atlas",
    "birch",
    "twig",
    "cedar",
  ),
  filter("children_of selects direct children", { childrenOf: "<shelf>" }, "atlas", "birch", "cedar"),
  filter("ancestors_of selects ancestors", { ancestorsOf: "<twig>" }, "org", "shelf", "birch"),
  filter("in_root selects what has no parent group", { inRoot: true }, "org"),
  filter("children_of / selects the root groups", { childrenOf: "/" }, "org"),
  filter(
    "ids selects these, and leaves out what does not exist",
    { ids: ["<cedar>", "<random>", "<atlas>"] },
    "atlas",
    "cedar",
  ),
  filter("what the caller may not see is in no list", { descendantsOf: "<foreign>" }),
  filter("all filters must match", { childrenOf: "<shelf>", descendantsOf: "<birch>" }),
  {
    anchor: "filters",
    says: "name matches exactly",
    call: "ListGroups",
    request: { ...below("shelf"), name: "atlas" },
    expect: { result: { groups: groupsNamed("atlas", "twig"), totalCount: "2" } },
  },
  {
    anchor: "filters",
    says: "name matches no part",
    call: "ListGroups",
    request: { ...below("shelf"), name: "atla" },
    expect: { result: { groups: [], totalCount: "0" } },
  },
  {
    anchor: "filters",
    says: "name narrows a hierarchy filter",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<shelf>&name=atlas",
    expect: { json: { groups: groupsNamed("atlas"), totalCount: "1" } },
  },
  {
    anchor: "filters",
    says: "a query has uidp.descendants_of or uidp.descendantsOf",
    steps: ["uidp.descendants_of", "uidp.descendantsOf"].map((name) => ({
      http: `GET /iam/v2beta1/groups?${name}=<birch>`,
      expect: { json: { groups: groupsNamed("twig"), totalCount: "1" } },
    })),
  },
  {
    anchor: "filters",
    says: "an empty parameter is none",
    http: "GET /iam/v2beta1/groups?uidp.descendants_of=<birch>&name=&page_token=&order_by=",
    expect: { json: { groups: groupsNamed("twig") } },
  },
  {
    anchor: "filters",
    says: "what is no uid is refused",
    call: "ListGroups",
    request: { uidp: { descendantsOf: "shelf" } },
    expect: invalid([/^uidp\.descendants(Of|_of)$/, NO_UID]),
  },
  {
    anchor: "filters",
    says: "descendants_of filters repos",
    call: "ListRepos",
    request: below("full"),
    expect: { result: { repos: [{ uid: "<repo>", name: "one" }], totalCount: "1" } },
  },
  {
    anchor: "filters",
    says: "descendants_of filters account associations, and counts them where the group above has none",
    call: "ListAccountAssociations",
    request: below("org"),
    expect: { result: { accountAssociations: [{ uid: "<full>" }], totalCount: "1" } },
  },
  {
    anchor: "filters",
    says: "at most 1,000 ids are taken",
    shownBy: "test/pipeline/resource/list-query.test.ts",
    test: "a thousand and one uids",
  },
  {
    anchor: "filters",
    says: "a name is no pattern and keeps its case",
    steps: ["ATLAS", "%", "atl_s"].map((name) => ({
      call: "ListGroups",
      request: { ...below("shelf"), name },
      expect: { result: { groups: [], totalCount: "0" } },
    })),
  },
  {
    anchor: "filters",
    says: "a name has no control characters",
    call: "ListGroups",
    request: { name: "a\nb" },
    expect: invalid(["name", "name must not contain control characters"]),
  },
  {
    anchor: "filters",
    says: "a parameter is given once",
    http: "GET /iam/v2beta1/groups?page_size=5&pageSize=5",
    expect: invalid(["pageSize", "pageSize is given twice"]),
  },
];

/** Ordering and filters. */
export const filters: readonly Rule[] = [...orders, ...selections];
