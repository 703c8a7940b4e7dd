// What docs/api-rules.md says about the registry and advisories.
import { absent, alreadyExists, each, invalid, type Rule, type Step } from "./rule.js";

const createsCopy: Step = {
  call: "CreateRepo",
  request: { parent: "<fresh>", repo: { name: "copy", sync_config: { source: "<repo>" } } },
  expect: { result: { name: "copy", sync_config: { source: "<repo>" } } },
  keep: { made: "uid" },
};

/** The registry, tags and advisories. */
export const registry: readonly Rule[] = [
  {
    anchor: "registry",
    says: "the catalogue has the repos of the group that the operator has chosen, by name, for all who may list repos somewhere",
    shownBy: "test/registry/catalogue.test.ts",
    test: "has the repos of the group itself, in the order of their names, for every organisation alike",
  },
  {
    anchor: "registry",
    says: "the catalogue is empty unless the operator has chosen a group",
    call: "ListCatalogImages",
    request: {},
    expect: { result: { repos: [], totalCount: "0", nextPageToken: "", skipped: 0 } },
  },
  {
    anchor: "registry",
    says: "a repo has a uid, a name and a create time",
    call: "CreateRepo",
    request: { parent: "<fresh>", repo: { name: "app" } },
    expect: { result: { uid: /^<fresh>\/[0-9a-f]{16}$/, name: "app", createTime: /^20.*Z$/ } },
  },
  {
    anchor: "registry",
    says: "the name of a repo is unique in its group",
    steps: [0, 1].map((i) => ({
      call: "CreateRepo",
      request: { parent: "<fresh>", repo: { name: "app" } },
      expect: i === 0 ? {} : alreadyExists("registry.chainguard.dev/Repo"),
    })),
  },
  {
    anchor: "registry",
    says: "groups may have repos of one name",
    steps: ["<fresh>", "<freshOther>"].map((parent) => ({
      call: "CreateRepo",
      request: { parent, repo: { name: "app" } },
      expect: {},
    })),
  },
  {
    anchor: "registry",
    says: "a copy has tier, bundles, aliases and active tags of its source",
    shownBy: "test/registry/repo-copies.test.ts",
    test: "has what its source has, until copying ends 14 days later",
  },
  {
    anchor: "registry",
    says: "a copy has the readme of its source",
    steps: [createsCopy, { call: "GetRepoReadme", request: { uid: "<made>" }, expect: { result: { content: "one" } } }],
  },
  {
    anchor: "registry",
    says: "who does not operate the service changes no readme",
    call: "UpdateRepoReadme",
    request: { repoReadme: { uid: "<freshRepo>", content: "mine" } },
    expect: { code: "PERMISSION_DENIED", message: /repo\.internal\.admin/ },
  },
  {
    anchor: "registry",
    says: "the architectures and the size of an image are told",
    call: "GetArchitectures",
    request: { repoUid: "<repo>", digest: "<digest>" },
    expect: { result: { architectures: each(/./) } },
  },
  {
    anchor: "tags",
    says: "a tag has its name and its digest",
    call: "CreateTag",
    request: { parent: "<freshRepo>", tag: { name: "v1.0", digest: "<digest>" } },
    expect: { result: { uid: /^<freshRepo>\/[0-9a-f]{16}$/, name: "v1.0", digest: "<digest>", updateTime: /Z$/ } },
  },
  {
    anchor: "tags",
    says: "creating a tag that exists moves it",
    steps: ["a", "b"].map((digit, i) => ({
      call: "CreateTag",
      request: { parent: "<freshRepo>", tag: { name: "v1", digest: `sha256:${digit.repeat(64)}` } },
      expect: { result: { digest: `sha256:${digit.repeat(64)}`, ...(i === 1 && { uid: "<made>" }) } },
      ...(i === 0 && { keep: { made: "uid" } }),
    })),
  },
  {
    anchor: "tags",
    says: "a tag is deleted, and its repo stays",
    steps: [
      { call: "DeleteTag", request: { uid: "<freshTag>" }, expect: { text: "" } },
      { call: "GetTag", request: { uid: "<freshTag>" }, expect: { code: "NOT_FOUND" } },
      { call: "GetRepo", request: { uid: "<freshRepo>" }, expect: { result: { uid: "<freshRepo>" } } },
    ],
  },
  {
    anchor: "tags",
    says: "the name of a tag has letters, digits, dots, underscores and hyphens",
    call: "CreateTag",
    request: { parent: "<freshRepo>", tag: { name: "-v1", digest: "<digest>" } },
    expect: invalid(["name", /./]),
  },
  {
    anchor: "tags",
    says: "tags of referrers, dates and package builds are left out unless asked for",
    steps: [
      ...["sha256-0123", "v1-20260131", "v1-r3", "v1"].map(
        (name): Step => ({
          call: "CreateTag",
          request: { parent: "<freshRepo>", tag: { name, digest: "<digest>" } },
          expect: {},
        }),
      ),
      {
        call: "ListTags",
        request: { uidp: { descendantsOf: "<freshRepo>" } },
        expect: { result: { tags: [{ name: "v1" }], totalCount: "1" } },
      },
      {
        call: "ListTags",
        request: {
          uidp: { descendantsOf: "<freshRepo>" },
          includeReferrers: true,
          includeDates: true,
          includeEpochs: true,
        },
        expect: { result: { tags: each({ name: /./ }, 4), totalCount: "4" } },
      },
    ],
  },
  {
    anchor: "advisories",
    says: "advisories are read over version 2",
    call: "GetAdvisory",
    request: { uid: "<advisory>" },
    expect: { result: { uid: "<advisory>", createTime: /Z$/, updateTime: /Z$/, deleteTime: absent } },
  },
  {
    anchor: "advisories",
    says: "lists have withdrawn ones, which have a delete time",
    steps: [
      {
        call: "vulnerabilities.v1.Advisories.Delete",
        as: "admin",
        request: { id: "<freshAdvisory>" },
        expect: {},
      },
      {
        call: "ListAdvisories",
        request: { uidp: { descendantsOf: "<fresh>" } },
        expect: { result: { advisories: [{ uid: "<freshAdvisory>", deleteTime: /Z$/ }], totalCount: "1" } },
      },
    ],
  },
];
