// What docs/api-rules.md says about the registry and advisories.
import { absent, alreadyExists, each, type Rule, rejects, type Step } from "./rule.js";

const createsCopy: Step = {
  call: "CreateRepo",
  request: { parent: "<fresh>", repo: { name: "copy", sync_config: { source: "<repo>" } } },
  expect: { result: { name: "copy", sync_config: { source: "<repo>" } } },
  keep: { made: "uid" },
};

/** What lists of tags hide by default, as the fields of requests name it. */
const tagKinds = ["Referrers", "Dates", "Epochs", "VcsSnapshots"] as const;
type TagKind = (typeof tagKinds)[number];
const kindSets = Array.from({ length: 16 }, (_, bits) => tagKinds.filter((_, i) => (bits >> i) & 1));

const tagName = "name must match ^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$";

/** A tag of each set of kinds, in the order of names. No name ends as a date and as a package build. */
const tagsOfKinds: readonly (readonly [name: string, kinds: readonly TagKind[]])[] = [
  ["1.2", []],
  ["1.2-20260914", ["Dates"]],
  ["1.2-r0", ["Epochs"]],
  ["1.2_git20260914", ["VcsSnapshots"]],
  ["1.2_git20260914-20260915", ["Dates", "VcsSnapshots"]],
  ["1.2_git20260914-r0", ["Epochs", "VcsSnapshots"]],
  ["sha256-0123", ["Referrers"]],
  ["sha256-0123-20260914", ["Referrers", "Dates"]],
  ["sha256-0123-r0", ["Referrers", "Epochs"]],
  ["sha256-0123_git", ["Referrers", "VcsSnapshots"]],
  ["sha256-0123_git-20260914", ["Referrers", "Dates", "VcsSnapshots"]],
  ["sha256-0123_git-r0", ["Referrers", "Epochs", "VcsSnapshots"]],
];
const listTags = (included: readonly TagKind[]) =>
  tagsOfKinds.filter(([, kinds]) => kinds.every((kind) => included.includes(kind))).map(([name]) => name);
const matchNames = (included: readonly TagKind[]) =>
  new RegExp(`^(?:${listTags(included).join("|")})$`.replaceAll(".", "[.]"));
const createTag = (name: string): Step => ({
  call: "CreateTag",
  request: { parent: "<freshRepo>", tag: { name, digest: "<digest>" } },
  expect: {},
});
const createsTags = tagsOfKinds.map(([name]) => createTag(name));
const snapshots = ["1.2_cvs", "1.2_svn3", "1.2b_git20260914-dev", "1.2_hg1_p2", "1.2_rc_git1", "app-1_git1-jre"];
const noSnapshots = ["feature_git", "_git20260914", "1.2_github", "1.2_git3f2a9c1", "1.2_git1.3", "1.2_GIT1", "1.2_p3"];

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
  ...Object.entries<readonly [tag: object, field: string, rule: string]>({
    "no name": [{ name: "" }, "name", `${tagName}: name is required`],
    ...Object.fromEntries(
      [".a", "-v1", "a/b", "a".repeat(129)].map((name) => [
        `the name ${name.slice(0, 9)}`,
        [{ name }, "name", tagName],
      ]),
    ),
    ...Object.fromEntries(
      ["", "sha256:abc", `sha256:${"A".repeat(64)}`, `md5:${"a".repeat(32)}`].map((digest) => [
        `the digest ${JSON.stringify(digest.slice(0, 12))}`,
        [{ digest }, "digest", "digest must be a digest, such as sha256: and 64 hexadecimal digits"],
      ]),
    ),
    "a label of two lines": [
      { bundles: ["a\nb"] },
      ...(["bundles", "bundles must each be one line without control characters"] as const),
    ],
  }).map(([what, [tag, field, rule]]) =>
    rejects(`a tag with ${what} is rejected`, {
      anchor: "tags",
      call: "CreateTag",
      request: { parent: "<freshRepo>", tag: { name: "a", digest: "<digest>", ...tag } },
      violations: [[field, rule]],
    }),
  ),
  {
    anchor: "tags",
    says: "version 2 lists a tag of referrers, dates, package builds or snapshots only if each of its kinds is included",
    steps: [
      ...createsTags,
      ...kindSets.map(
        (kinds): Step => ({
          call: "ListTags",
          request: {
            uidp: { descendantsOf: "<freshRepo>" },
            orderBy: "name",
            ...Object.fromEntries(kinds.map((kind) => [`include${kind}`, true])),
          },
          expect: {
            result: { tags: listTags(kinds).map((name) => ({ name })), totalCount: `${listTags(kinds).length}` },
          },
        }),
      ),
    ],
  },
  {
    anchor: "tags",
    says: "version 1 lists and counts all tags, but for those of which one kind is excluded",
    steps: [
      ...createsTags,
      ...kindSets.flatMap((kinds): Step[] => {
        const excluded = tagKinds.filter((kind) => !kinds.includes(kind));
        const excludes = Object.fromEntries(excluded.map((kind) => [`exclude${kind}`, true]));
        return [
          {
            call: "registry.Registry.ListTags",
            request: { uidp: { descendantsOf: "<freshRepo>" }, ...excludes },
            // In the order of uids.
            expect: { result: { items: each({ name: matchNames(kinds) }, listTags(kinds).length) } },
          },
          {
            call: "registry.Registry.GetRepoTagsSummary",
            request: { repoId: "<freshRepo>", ...excludes },
            expect: { result: { tagCount: `${listTags(kinds).length}` } },
          },
        ];
      }),
    ],
  },
  ...[
    { says: "a suffix of a version control system makes a snapshot", names: snapshots, isSnapshot: true },
    { says: "what is no such suffix of a version makes none", names: noSnapshots, isSnapshot: false },
  ].map(
    ({ says, names, isSnapshot }): Rule => ({
      anchor: "tags",
      says,
      steps: [
        ...names.map(createTag),
        {
          call: "ListTags",
          request: { uidp: { descendantsOf: "<freshRepo>" } },
          expect: { result: { totalCount: isSnapshot ? "0" : `${names.length}` } },
        },
      ],
    }),
  ),
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
