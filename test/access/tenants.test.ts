// What AccessService tells one organisation is the same whether another one exists or not, and is in lists that the caller
// may read.
import assert from "node:assert/strict";
import { after, before, describe, it, mock } from "node:test";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { type ListRolesResponse, RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { formatCapabilityNames } from "../../src/iam/roles/capability-names.js";
import { Caller } from "../../src/pipeline/auth/caller.js";
import { UnaryCall } from "../../src/pipeline/call.js";
import { AccessQuestions, type PersonKey } from "../../src/store/iam/access-questions.js";
import { isCampaign } from "../support/scale.js";
import type { OpenedPlatform } from "./platform.js";
import { a, b, type CallerName, callers, openTenants, people, stranger } from "./tenants-world.js";

/** The services with A alone, and with B beside it. */
let alone: OpenedPlatform;
let beside: OpenedPlatform;
before(async () => {
  alone = await openTenants(false);
  beside = await openTenants(true);
});
after(async () => {
  await alone.close();
  await beside.close();
});

type Method = "Check" | "Explain" | "ListSubjects" | "ListAccess" | "SearchNames" | "Find" | "TestClaims";
const names = Object.keys(callers) as CallerName[];

/** A question, and what of its pages is read. */
interface Asked {
  readonly method: Method;
  readonly request: object;
}

const everyUid = [...new Set([...Object.values(a), ...Object.values(b), ...Object.values(people), stranger])];
const uidsOfA = [a.root, a.team, a.inner, a.workload, a.rootWorkload];
const identities = [a.workload, a.rootWorkload, b.workload, b.team, ...Object.values(people), stranger];
const resources = [a.root, a.team, a.inner, a.repo, a.beside, b.root, b.inner, b.binding, b.provider, people.ownerOfB];
const actions = [
  ["groups.list"],
  ["role_bindings.list"],
  ["repo.delete", "groups.list"],
  [`${AccessService.typeName}.Check`],
];

/** What Find is asked for, beside every uid. */
const texts = [
  ...[
    "ac",
    "acme",
    "bees",
    "ac bees",
    "workload",
    "role",
    "provider",
    "ac acme 0",
    "viewer",
    "joined",
    "registered",
    "foreign",
  ],
  ...["joined@example.com", "registered@example.com", "registered@", "foreign@example.com", "one@example.com"],
  ...[
    "ac acme 0/ac acme 1/ac-acme",
    "ac bees 0/ac bees 1/ac-bees",
    "ac bees 1/ac-bees:v1",
    "ac-bees:v1",
    `${b.team}/ac-bees`,
  ],
  ...[`sha256:${"0".repeat(64)}`, "0".repeat(32)],
];

function listQuestions(): readonly Asked[] {
  const pages = [1, 200].map((pageSize) => ({ pageSize }));
  const about = (resource: string, whom: readonly string[]) =>
    whom.flatMap((identity) =>
      actions.flatMap((some) =>
        (["Check", "Explain"] as const).map((method) => ({ method, request: { identity, actions: some, resource } })),
      ),
    );
  return [
    ...resources.flatMap((resource) => about(resource, identities)),
    // Everything there is, as the resource and as the identity.
    ...everyUid.flatMap((uid) => [...about(uid, [a.workload]), ...about(a.team, [uid])]),
    ...everyUid.flatMap((resource) =>
      actions.flatMap((some) =>
        pages.map((page): Asked => ({ method: "ListSubjects", request: { actions: some, resource, ...page } })),
      ),
    ),
    ...identities.flatMap((identity) =>
      ["", ...resources, ...uidsOfA].flatMap((group) =>
        pages.map((page): Asked => ({ method: "ListAccess", request: { identity, group, ...page } })),
      ),
    ),
    ...["a", "ac", "ac bees", "ac-bees", "ac acme", "joined", "registered"].flatMap((prefix) =>
      ["", a.root, a.team, b.root, b.team, b.repo].flatMap((group) =>
        pages.map((page): Asked => ({ method: "SearchNames", request: { prefix, group, ...page } })),
      ),
    ),
    ...[...texts, ...everyUid].flatMap((query) =>
      pages.map((page): Asked => ({ method: "Find", request: { query, ...page } })),
    ),
    ...[...identities, b.rootWorkload, b.provider].flatMap((identity) =>
      ["acme", "bees"].map((subject): Asked => {
        const claims = { iss: "https://issuer.example", sub: subject, aud: subject };
        return { method: "TestClaims", request: { identity, subject: { case: "claims", value: claims } } };
      }),
    ),
  ];
}

/** All questions in a campaign, otherwise a third of them, so that every one is asked by some callers. */
function chooseQuestions(caller: CallerName): readonly Asked[] {
  const index = names.indexOf(caller);
  return listQuestions().filter((_, i) => isCampaign || (i + index) % 3 === 0);
}

const outputs: Readonly<Record<string, DescMessage>> = Object.fromEntries(
  AccessService.methods.map(({ name, output }) => [name, output]),
);

interface Told {
  readonly json: Record<string, unknown>;
  readonly pageToken: string;
}

/** One answer, as JSON: a page token by its length alone, an error by its code, its text and its details. */
async function ask(platform: OpenedPlatform, caller: CallerName, { method, request }: Asked): Promise<Told> {
  try {
    const found = await platform.call(`/${AccessService.typeName}/${method}`, callers[caller], request);
    const { nextPageToken: pageToken = "" } = found as Message & { nextPageToken?: string };
    const json = toJson(outputs[method] as DescMessage, found) as Record<string, unknown>;
    return { json: { ...json, nextPageToken: pageToken.length }, pageToken };
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    assert.ok(![Code.Internal, Code.Unknown].includes(error.code), error.message);
    const details = error.details.map((one) => ("desc" in one ? [one.desc.typeName, one.value] : one));
    return { json: { code: error.code, text: error.rawMessage, details }, pageToken: "" };
  }
}

/** All pages of an answer. */
async function askAll(platform: OpenedPlatform, caller: CallerName, asked: Asked): Promise<Record<string, unknown>[]> {
  const pages: Record<string, unknown>[] = [];
  let pageToken = "";
  do {
    const told: Told = await ask(platform, caller, { ...asked, request: { ...asked.request, pageToken } });
    pages.push(told.json);
    pageToken = told.pageToken;
    assert.ok(pages.length < 100, "the pages do not end");
  } while (pageToken !== "");
  return pages;
}

/** The questions whose answers depend on B, by method and caller. */
async function findDifferences(questions: readonly Asked[], who: readonly CallerName[]): Promise<string[]> {
  const found: string[] = [];
  for (const caller of who) {
    for (const asked of questions) {
      const [without, with_] = [await askAll(alone, caller, asked), await askAll(beside, caller, asked)];
      const texts = [JSON.stringify(without), JSON.stringify(with_)];
      if (texts[0] !== texts[1]) {
        found.push(
          `${asked.method} by ${caller}: ${JSON.stringify(asked.request)}: ${texts[0]} but beside B ${texts[1]}`,
        );
      }
    }
  }
  return found;
}

const methodsOf = (differences: readonly string[]) => [...new Set(differences.map((one) => one.split(" ")[0]))].sort();

describe("what AccessService tells an organisation", () => {
  for (const caller of names) {
    it(`does not depend on another one, for the ${caller}`, async (t) => {
      const questions = chooseQuestions(caller);
      t.diagnostic(`${questions.length} questions`);
      assert.deepEqual((await findDifferences(questions, [caller])).slice(0, 5), []);
    });
  }

  it("does not depend on another one with page tokens of other callers and other lists either", async () => {
    const found: string[] = [];
    const questions: readonly Asked[] = [
      { method: "ListSubjects", request: { actions: ["groups.list"], resource: a.team, pageSize: 1 } },
      { method: "ListSubjects", request: { actions: ["groups.list"], resource: a.root, pageSize: 1 } },
      { method: "ListAccess", request: { identity: people.joined, group: a.root, pageSize: 1 } },
      { method: "ListAccess", request: { identity: a.workload, pageSize: 1 } },
      { method: "SearchNames", request: { prefix: "a", pageSize: 1 } },
      { method: "SearchNames", request: { prefix: "ac", group: a.root, pageSize: 1 } },
      { method: "Find", request: { query: "ac", pageSize: 1 } },
    ];
    let accepted = 0;
    for (const from of ["owner", "viewer"] as const) {
      for (const [i, first] of questions.entries()) {
        const tokens = [(await ask(alone, from, first)).pageToken, (await ask(beside, from, first)).pageToken];
        for (const to of names) {
          for (const [j, second] of questions.entries()) {
            const answers: string[] = [];
            for (const [k, platform] of [alone, beside].entries()) {
              const request = { ...second.request, pageToken: tokens[k] };
              const { json } = await ask(platform, to, { ...second, request });
              answers.push(JSON.stringify(json));
              const isOwn = callers[to].identityUid === callers[from].identityUid && i === j;
              if (json.code === undefined) accepted++;
              if (
                tokens[k] !== "" &&
                !isOwn &&
                json.code !== Code.InvalidArgument &&
                json.code !== Code.PermissionDenied
              )
                found.push(`${to} took a token of ${from}: ${JSON.stringify([first, second, json])}`);
            }
            if (answers[0] !== answers[1]) found.push(`${to}: ${answers.join(" but beside B ")}`);
          }
        }
      }
    }
    assert.deepEqual(found, []);
    assert.ok(accepted > 0);
  });

  it("is told to B of B", async () => {
    const { identityUid } = { ...callers.owner, identityUid: people.ownerOfB };
    const path = `/${AccessService.typeName}/SearchNames`;
    const request = { prefix: "ac bees", pageSize: 200 };
    const found = await beside.call(path, { ...callers.owner, identityUid }, request);
    assert.ok((found as Message & { resources: unknown[] }).resources.length >= 6);
  });
});

describe("control: a difference is found", () => {
  it("where nothing limits what callers see", async () => {
    const everything = [
      mock.method(Caller.prototype, "holds", () => true),
      mock.method(UnaryCall.prototype, "visibleGroups", async () => [a.root, b.root]),
    ];
    try {
      const found = methodsOf(await findDifferences(chooseQuestions("nobody"), ["nobody"]));
      assert.deepEqual(found, ["Check", "Explain", "Find", "ListAccess", "ListSubjects", "SearchNames", "TestClaims"]);
    } finally {
      for (const one of everything) one.mock.restore();
    }
  });

  it("where people need not have joined", async () => {
    const accept = <T extends object>(rows: T[]) => rows.map((row) => ({ ...row, accepted: true }));
    const readers = ["findBindingsAt", "findBindingsBelow", "findBindingsOfGroup"] as const;
    const joined = [
      mock.method(AccessQuestions.prototype, "hasJoinedBelow", async () => true),
      mock.method(AccessQuestions.prototype, "findJoined", async function all(this: AccessQuestions, by: PersonKey) {
        return "uid" in by ? [...(await this.findIdentities([by.uid])).values()] : [];
      }),
      ...readers.map((name) => {
        const read = AccessQuestions.prototype[name] as (...args: never[]) => Promise<object[]>;
        return mock.method(AccessQuestions.prototype, name, async function all(
          this: AccessQuestions,
          ...args: never[]
        ) {
          return accept(await read.apply(this, args));
        } as never);
      }),
    ];
    try {
      const found = methodsOf(await findDifferences(chooseQuestions("owner"), ["owner"]));
      assert.deepEqual(found, ["Check", "Explain", "Find", "ListAccess", "ListSubjects"]);
    } finally {
      for (const one of joined) one.mock.restore();
    }
  });
});

// The fields that name a resource or a person.
const TELLING = /^(uid|name|email|roleBinding|mapping|externalGroupId|group|identityProvider|expected)$/;

function collectTexts(value: unknown, texts: Set<string>, key = ""): void {
  if (Array.isArray(value)) for (const one of value) collectTexts(one, texts, key);
  else if (typeof value === "object" && value !== null) {
    for (const [name, one] of Object.entries(value)) collectTexts(one, texts, name);
  } else if (typeof value === "string" && value !== "" && (key === "any" || TELLING.test(key))) texts.add(value);
}

function collectAll(value: unknown, texts: Set<string>): void {
  if (typeof value === "object" && value !== null) for (const one of Object.values(value)) collectAll(one, texts);
  else if (typeof value === "string") texts.add(value);
}

/** All texts in the lists that a caller may read, over all groups and in each group of A. */
async function readLists(platform: OpenedPlatform, caller: CallerName): Promise<ReadonlySet<string>> {
  const lists = [...platform.methods.values()].filter(({ path, kind }) => {
    return kind === "unary" && /\.(iam|registry)\.v2beta1\.\w+Service\/List/.test(path);
  });
  const texts = new Set<string>();
  const read = async (path: string, output: DescMessage, request: object) => {
    let pageToken = "";
    do {
      const page = await platform
        .call(path, callers[caller], { ...request, pageSize: 200, pageToken })
        .catch((error) => {
          if (error instanceof ConnectError && [Code.PermissionDenied, Code.InvalidArgument].includes(error.code))
            return undefined;
          throw error;
        });
      if (page === undefined) return;
      collectAll(toJson(output, page), texts);
      pageToken = (page as Message & { nextPageToken?: string }).nextPageToken ?? "";
    } while (pageToken !== "");
  };
  for (const { path, desc } of lists) {
    if (desc.input.fields.every(({ name }) => name !== "page_token")) continue;
    await read(path, desc.output, {});
    if (desc.input.fields.some(({ name }) => name === "uidp")) {
      for (const group of [a.root, a.team, a.inner]) {
        await read(path, desc.output, { uidp: { descendantsOf: group } });
        await read(path, desc.output, { uidp: { childrenOf: group } });
      }
    }
  }
  const { listBindings } = BindingsService.method;
  for (const pending of [false, true]) {
    await read(`/${BindingsService.typeName}/${listBindings.name}`, listBindings.output, { pending });
  }
  return texts;
}

async function findUnlisted(who: readonly CallerName[]): Promise<string[]> {
  const found: string[] = [];
  for (const caller of who) {
    const listed = await readLists(beside, caller);
    // The token of the caller says who it is, and of which mappings.
    const { identityUid, mappings = [] } = callers[caller] as (typeof callers)["person of the provider"];
    for (const asked of chooseQuestions(caller)) {
      const own = new Set<string>([identityUid, ...mappings]);
      collectAll(asked.request, own);
      const told = new Set<string>();
      for (const page of await askAll(beside, caller, asked)) if (page.code === undefined) collectTexts(page, told);
      for (const text of told) {
        // A uid names all that it is in.
        if ([...listed].some((one) => one.startsWith(`${text}/`))) continue;
        if (!own.has(text) && !listed.has(text))
          found.push(`${asked.method} by ${caller}: ${text}: ${JSON.stringify(asked.request)}`);
      }
    }
  }
  return found;
}

interface ShownGrant {
  readonly role: { readonly uid: string };
  readonly capabilities?: readonly string[];
}

/** Capabilities in answers about others that no role has in the caller's list of roles. */
async function findUnlistedCapabilities(caller: CallerName): Promise<{ found: string[]; shown: number }> {
  const { listRoles } = RolesService.method;
  const request = { pageSize: 200, uidp: {} };
  const listed = new Map<string, readonly string[]>();
  for (const uidp of [{}, { descendantsOf: a.root }, { descendantsOf: a.team }]) {
    const page = await beside.call(`/${RolesService.typeName}/${listRoles.name}`, callers[caller], {
      ...request,
      uidp,
    });
    for (const { uid, capabilities } of (page as ListRolesResponse).roles) {
      listed.set(uid, formatCapabilityNames(capabilities));
    }
  }
  const found: string[] = [];
  let shown = 0;
  for (const asked of chooseQuestions(caller)) {
    if ((asked.request as { identity?: string }).identity === callers[caller].identityUid) continue;
    for (const page of await askAll(beside, caller, asked)) {
      const subjects = (page.subjects ?? []) as { grants?: ShownGrant[] }[];
      const grants = [...((page.grants ?? []) as ShownGrant[]), ...subjects.flatMap((one) => one.grants ?? [])];
      for (const { role, capabilities = [] } of grants) {
        shown += capabilities.length;
        const unlisted = capabilities.filter((one) => !listed.get(role.uid)?.includes(one));
        if (unlisted.length > 0) found.push(`${asked.method}: ${unlisted.join()} of ${role.uid}`);
      }
    }
  }
  return { found, shown };
}

describe("every uid, name and address in an answer", () => {
  for (const caller of names) {
    it(`goes with capabilities that the list of roles of the ${caller} has`, async (t) => {
      const { found, shown } = await findUnlistedCapabilities(caller);
      t.diagnostic(`${shown} capabilities`);
      assert.deepEqual(found.slice(0, 5), []);
      if (caller === "owner") assert.ok(shown > 1_000);
    });
  }

  for (const caller of names) {
    it(`is in the lists of the ${caller}`, async () => {
      assert.deepEqual((await findUnlisted([caller])).slice(0, 5), []);
    });
  }

  it("control: is found where it is in no list", async () => {
    const { holds, visibleGroups } = Caller.prototype;
    // The lists are those of the real rules, and the answers are not.
    const listed = await readLists(beside, "nobody");
    assert.ok(!listed.has(b.workload) && holds !== undefined && visibleGroups !== undefined);
    const everything = mock.method(Caller.prototype, "holds", () => true);
    try {
      const asked = { method: "ListSubjects", request: { actions: ["groups.list"], resource: b.team } } as const;
      const told = new Set<string>();
      for (const page of await askAll(beside, "nobody", asked)) collectTexts(page, told);
      assert.ok([...told].some((text) => !listed.has(text)));
    } finally {
      everything.mock.restore();
    }
  });
});
