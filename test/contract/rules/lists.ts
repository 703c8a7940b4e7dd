// What docs/api-rules.md says about lists.
import { absent, each, invalid, type Rule, type Step } from "./rule.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const below = (group: string) => ({ uidp: { descendantsOf: `<${group}>` } });
const children = (group: string) => ({ uidp: { childrenOf: `<${group}>` } });
const groupsNamed = (...names: readonly string[]) => names.map((name) => ({ uid: `<${name}>` }));

/** Pages. */
const pages: readonly Rule[] = [
  {
    anchor: "lists",
    says: "a page has the resources, the total of all pages and what was skipped",
    call: "ListGroups",
    request: { ...below("shelf"), pageSize: 1, skip: 1 },
    expect: {
      result: { groups: each({ uid: /./ }, 1), nextPageToken: /./, totalCount: "4", skipped: 1 },
      json: { totalCount: "4", skipped: 1, nextPageToken: /^[\w-]+$/ },
    },
  },
  {
    anchor: "lists",
    says: "next_page_token is absent from JSON on the last page",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<shelf>",
    expect: { json: { groups: each({ uid: /./ }, 3), nextPageToken: absent, totalCount: "3", skipped: 0 } },
  },
  {
    anchor: "lists",
    says: "an empty list has its list and its numbers",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<cedar>",
    expect: { json: { groups: [], totalCount: "0", skipped: 0, nextPageToken: absent } },
  },
  {
    anchor: "lists",
    says: "roles are under roles",
    http: "GET /iam/v2beta1/roles?page_size=1",
    expect: { json: { roles: each({ uid: /./ }, 1), totalCount: /^[1-9]\d*$/ } },
  },
  {
    anchor: "lists",
    says: "repos are under repos",
    http: "GET /registry/v2beta1/repos?page_size=1&skip=0&order_by=name&uidp.descendants_of=<org>",
    expect: { json: { repos: each({ uid: /./ }, 1), totalCount: /^[1-9]\d*$/, skipped: 0 } },
  },
  {
    anchor: "lists",
    says: "a page has 50 when the request does not say",
    call: "ListGroups",
    request: children("hall"),
    expect: { result: { groups: each({ uid: /./ }, 50), totalCount: "205", nextPageToken: /./ } },
  },
  {
    anchor: "lists",
    says: "a page size of zero is none",
    http: "GET /iam/v2beta1/groups?uidp.children_of=<hall>&page_size=0",
    expect: { json: { groups: each({ uid: /./ }, 50) } },
  },
  {
    anchor: "lists",
    says: "a page may have 200",
    call: "ListGroups",
    request: { ...children("hall"), pageSize: 200 },
    expect: { result: { groups: each({ uid: /./ }, 200), totalCount: "205", nextPageToken: /./ } },
  },
  {
    anchor: "lists",
    says: "a page never has more than 200",
    call: "ListGroups",
    request: { ...children("hall"), pageSize: 1_000_000 },
    expect: { result: { groups: each({ uid: /./ }, 200) } },
  },
  {
    anchor: "lists",
    says: "a negative page size is refused",
    call: "ListGroups",
    request: { pageSize: -1 },
    expect: invalid([/^page_?[sS]ize$/, /must not be negative/]),
  },
  {
    anchor: "lists",
    says: "a negative skip is refused",
    call: "ListGroups",
    request: { skip: -1 },
    expect: invalid(["skip", "skip must not be negative"]),
  },
  {
    anchor: "lists",
    says: "skip and page_size lead to any place: 10 and 5 to the 11th of the list",
    call: "ListGroups",
    request: { ...children("hall"), orderBy: "name", pageSize: 5, skip: 10 },
    expect: {
      result: {
        groups: ["010", "011", "012", "013", "014"].map((n) => ({ name: `row ${n}` })),
        totalCount: "205",
        skipped: 10,
      },
    },
  },
  {
    anchor: "lists",
    says: "the last page may be shorter",
    call: "ListGroups",
    request: { ...children("hall"), orderBy: "name", pageSize: 5, skip: 203 },
    expect: {
      result: {
        groups: [{ name: "row 203" }, { name: "row 204" }],
        nextPageToken: "",
        totalCount: "205",
        skipped: 203,
      },
    },
  },
  {
    anchor: "lists",
    says: "a skip beyond the end is an empty page",
    call: "ListGroups",
    request: { ...children("shelf"), skip: 7 },
    expect: { result: { groups: [], nextPageToken: "", totalCount: "3", skipped: 7 } },
  },
  {
    anchor: "lists",
    says: "a list has what the caller may see, and counts nothing else",
    call: "ListGroups",
    as: "viewer",
    request: { orderBy: "created_at" },
    expect: { result: { groups: groupsNamed("shelf", "atlas", "cedar", "birch", "twig"), totalCount: "5" } },
  },
  {
    anchor: "lists",
    says: "who may see nothing gets an empty list",
    call: "ListGroups",
    as: "nobody",
    request: {},
    expect: { result: { groups: [], totalCount: "0" } },
  },
];

const firstPage: Step = {
  call: "ListGroups",
  request: { ...children("wing"), orderBy: "created_at desc", pageSize: 3 },
  expect: { result: { groups: [{ name: "w2" }, { name: "w4" }, { name: "w6" }], totalCount: "7", skipped: 0 } },
  keep: { page: "nextPageToken" },
};
const nextPage = (pageToken: string, change: object = {}) => ({
  ...children("wing"),
  orderBy: "created_at desc",
  pageSize: 3,
  pageToken,
  ...change,
});

/** Page tokens. */
const pageTokens: readonly Rule[] = [
  {
    anchor: "page-tokens",
    says: "the same request with the token of the page before gets the next page, in the same order, until none is left",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        request: nextPage("<page>"),
        expect: { result: { groups: [{ name: "w1" }, { name: "w3" }, { name: "w5" }], totalCount: "7" } },
        keep: { last: "nextPageToken" },
      },
      {
        call: "ListGroups",
        request: nextPage("<last>"),
        expect: {
          result: { groups: [{ name: "w0" }], nextPageToken: "", totalCount: "7" },
          json: { nextPageToken: absent },
        },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token is good for almost three days",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        laterMs: 3 * DAY_MS - 60_000,
        request: nextPage("<page>"),
        expect: { result: { groups: [{ name: "w1" }, { name: "w3" }, { name: "w5" }] } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token older than three days begins again, without an error",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        laterMs: 3 * DAY_MS + 60_000,
        request: nextPage("<page>"),
        expect: { result: { groups: [{ name: "w2" }, { name: "w4" }, { name: "w6" }], totalCount: "7" } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "in a query the token is page_token",
    steps: [
      {
        http: "GET /iam/v2beta1/groups?uidp.children_of=<wing>&order_by=name&page_size=5",
        expect: { json: { groups: each({ name: /^w[0-4]$/ }, 5), nextPageToken: /./, totalCount: "7" } },
        keep: { page: "nextPageToken" },
      },
      {
        http: "GET /iam/v2beta1/groups?uidp.children_of=<wing>&order_by=name&page_size=5&page_token=<page>",
        expect: { json: { groups: [{ name: "w5" }, { name: "w6" }], nextPageToken: absent, totalCount: "7" } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "page_size may change from page to page",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        request: nextPage("<page>", { pageSize: 1 }),
        expect: { result: { groups: [{ name: "w1" }] } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a skip that is repeated with the token is not applied twice, and is repeated in the answer",
    steps: [
      {
        call: "ListGroups",
        request: nextPage("", { skip: 2 }),
        expect: { result: { groups: [{ name: "w6" }, { name: "w1" }, { name: "w3" }], skipped: 2 } },
        keep: { page: "nextPageToken" },
      },
      {
        call: "ListGroups",
        request: nextPage("<page>", { skip: 2 }),
        expect: { result: { groups: [{ name: "w5" }, { name: "w0" }], skipped: 2, nextPageToken: "" } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token is refused by a list in another order",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        request: nextPage("<page>", { orderBy: "name" }),
        expect: invalid([/^page_?[tT]oken$/, /belongs to a list with other filters or another order/]),
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token is refused by a list with other filters",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        request: nextPage("<page>", { name: "w1" }),
        expect: invalid([/^page_?[tT]oken$/, /belongs to a list with other filters or another order/]),
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token that the service did not issue is refused",
    call: "ListGroups",
    request: { pageToken: "Zm9yZ2Vk" },
    expect: invalid([/^page_?[tT]oken$/, /is not one this service made/]),
  },
  {
    anchor: "page-tokens",
    says: "v2 and v2beta1 know each other's tokens",
    steps: [
      firstPage,
      {
        call: "iam.v2.GroupsService.ListGroups",
        request: nextPage("<page>"),
        expect: { result: { groups: [{ name: "w1" }, { name: "w3" }, { name: "w5" }] } },
      },
    ],
  },
  {
    anchor: "page-tokens",
    says: "a token gives no rights: another caller gets its own",
    steps: [
      firstPage,
      {
        call: "ListGroups",
        as: "nobody",
        request: nextPage("<page>"),
        expect: { result: { groups: [], totalCount: "0" } },
      },
    ],
  },
];

/** Lists. */
export const lists: readonly Rule[] = [...pages, ...pageTokens];
