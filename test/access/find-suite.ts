// What Find finds, and for whom, on either database.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { AccessService, FoundKind, Match } from "#gen/arbor/access/v1/access_pb.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { buildRepo } from "../../src/registry/repos/repo.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { kinds } from "../../src/store/kinds.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import type { Tx } from "../../src/store/transaction.js";
import { auditRow } from "../audit/log-kit.js";
import { type Placed, populate } from "../iam/populate.js";
import { tagRow } from "../store/registry-suite.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const [owner, viewer] = ["owner", "viewer"].map(builtinRoleUid) as [string, string];
const person = (name: string) => personUid("https://login.example", name);
const digest = `sha256:${"ab".repeat(32)}`;
const requestId = "0123456789abcdef0123456789abcdef";

/** The uids of an organisation of which every test sees the same. */
function uidsOf(root: string) {
  const prod = childUid(root, 1);
  return {
    root,
    prod,
    api: childUid(prod, 2),
    dev: childUid(root, 3),
    ci: childUid(prod, 0x20),
    role: childUid(root, 0x30),
    app: childUid(prod, 0x40),
    tag: childUid(childUid(prod, 0x40), 0x50),
  };
}
const ours = uidsOf(rootUid(0xa));
const theirs = uidsOf(rootUid(0xb));
const people = { ada: person("ada"), unconfirmed: person("unconfirmed"), foreign: person("foreign") };

const callers = {
  owner: principalOf(person("owner")),
  /** Sees only groups, in one group. */
  guest: principalOf(person("guest")),
  pending: principalOf(person("pending")),
  nobody: principalOf(person("nobody")),
  limited: { ...principalOf(person("owner")), limit: { scope: [ours.dev] } },
  theirs: principalOf(person("their owner")),
} as const satisfies Readonly<Record<string, Principal>>;
type CallerName = keyof typeof callers;

interface Entry {
  readonly kind: FoundKind;
  readonly uid: string;
  readonly name: string;
  readonly group: string;
  readonly path: readonly string[];
  readonly detail: string;
  readonly match: Match;
}

/** Registers the suite. */
export function testFind(newDatabase: () => Promise<string | undefined>): void {
  describe("Find", () => {
    let platform: OpenedPlatform;
    let placed: Placed;
    before(async () => {
      platform = await openPlatform(await newDatabase());
      await platform.store.write(async (tx) => {
        await fill(tx, ours, callers.owner.identityUid);
        await fill(tx, theirs, callers.theirs.identityUid);
        await fillPeople(tx);
        placed = await populate(tx, ours.dev, { name: "placed", text: "text" });
      });
    });
    after(() => platform.close());

    async function askPage(caller: CallerName, query: string, more: object = {}) {
      const path = `/${AccessService.typeName}/Find`;
      const found = await platform.call(path, callers[caller], { query, ...more });
      return found as unknown as { readonly resources: Entry[]; readonly nextPageToken: string };
    }

    async function ask(
      caller: CallerName,
      query: string,
      pageSize = 200,
      kind = FoundKind.UNSPECIFIED,
    ): Promise<Entry[]> {
      const all: Entry[] = [];
      let pageToken = "";
      for (let pages = 0; ; pages++) {
        assert.ok(pages < 100, "the pages do not end");
        const page = await askPage(caller, query, { pageSize, pageToken, kind });
        assert.ok(page.resources.length <= pageSize);
        all.push(...page.resources);
        pageToken = page.nextPageToken;
        if (pageToken === "") return all;
      }
    }
    const uids = async (caller: CallerName, query: string) => (await ask(caller, query)).map(({ uid }) => uid);

    it("finds one of every kind by its uid, as its list shows it", async () => {
      const { advisoryEvent: _, group: __, accountAssociation: ___, ...all } = placed;
      const found: FoundKind[] = [];
      for (const uid of [ours.prod, ...Object.values(all)]) {
        const entries = await ask("owner", ` ${uid.toUpperCase()} `);
        assert.deepEqual(
          entries.map((one) => [one.uid, one.match]),
          [[uid, Match.UID]],
        );
        found.push(...entries.map(({ kind }) => kind));
        for (const other of ["guest", "nobody", "theirs", "pending"] as const)
          if (other !== "guest" || uid !== ours.prod) assert.deepEqual(await uids(other, uid), [], `${other} ${uid}`);
      }
      // The account association of a group has its uid.
      const both = await ask("owner", placed.accountAssociation);
      assert.deepEqual(
        both.map(({ kind }) => kind),
        [FoundKind.GROUP, FoundKind.ACCOUNT_ASSOCIATION],
      );
      assert.equal(new Set([...found, ...both.map(({ kind }) => kind)]).size, kinds.length);
    });

    it("says where everything lies", async () => {
      const [tag] = await ask("owner", ours.tag);
      assert.deepEqual(
        [tag?.name, tag?.group, tag?.path, tag?.detail],
        ["v1.0", ours.prod, ["ours.example", "prod", "app"], digest],
      );
      const [root] = await ask("owner", "ours.example");
      assert.deepEqual([root?.uid, root?.group, root?.path], [ours.root, "", []]);
      // Names of groups above are not shown to one who may not list them.
      const [api] = await ask("guest", ours.api);
      assert.deepEqual([api?.name, api?.group, api?.path], ["api", ours.prod, ["prod"]]);
    });

    for (const [query, expected] of [
      ["ours.example/prod/api", [ours.api]],
      ["prod/api", [ours.api]],
      ["/Ours.Example//PROD/api/", [ours.api]],
      ["ours.example/prod/ci-deploy eu", [ours.ci]],
      ["ours.example/prod/app", [ours.app]],
      [`${ours.prod}/app`, [ours.app]],
      [`registry.example:5000/${ours.prod}/app:v1.0`, [ours.app, ours.tag]],
      ["ours.example/prod/app:v1.0", [ours.app, ours.tag]],
      ["localhost/ours.example/prod/app:v1.0", [ours.app, ours.tag]],
      ["app:v1.0", [ours.app, ours.tag]],
      ["app:v2", [ours.app]],
      [`prod/app@${digest}`, [ours.app, ours.tag]],
      [`prod/app:v1.0@${digest.replace("ab", "cd")}`, [ours.app]],
      ["prod/nothing", []],
      ["theirs.example/prod/api", []],
      ["registry.example/ours.example/prod/api", [ours.api]],
      ["/", []],
      [digest, [ours.tag]],
      [digest.toUpperCase(), [ours.tag]],
      [digest.replace("ab", "cd"), []],
    ] as const) {
      it(`finds by the path or the digest ${query.slice(0, 60)}`, async () => {
        assert.deepEqual(await uids("owner", query), expected);
        assert.deepEqual(await uids("nobody", query), []);
      });
    }

    for (const [query, expected] of [
      ["api", [ours.api]],
      ["API", [ours.api]],
      ["ａｐｉ", [ours.api]],
      ["pro", [ours.prod]],
      ["example our", [ours.root]],
      ["our exam", [ours.root]],
      ["deploy ci", [ours.ci]],
      ["ci_deploy.e", [ours.ci]],
      ["eu", [ours.ci]],
      ["eploy", []],
      ["auditors", [ours.role]],
      ["theirs", []],
      ["prod ours", []],
      ["\u202eapi", [ours.api]],
      ["café", []],
      ["%", []],
      ["zz_", []],
      ["'--", []],
      ["🚀", []],
    ] as const) {
      it(`finds by words, ${JSON.stringify(query)}`, async () => {
        // What `populate` made has other names.
        const found = (await uids("owner", query)).filter((uid) => !Object.values(placed).includes(uid));
        assert.deepEqual(found, expected);
      });
    }

    it("finds built-in roles for everybody, and the whole name first", async () => {
      assert.deepEqual((await uids("nobody", "viewer"))[0], viewer);
      assert.ok((await uids("nobody", "view")).includes(viewer));
      const found = await ask("owner", "prod");
      assert.deepEqual(
        found.map(({ uid, match }) => [uid, match]),
        [[ours.prod, Match.NAME]],
      );
    });

    it("finds people by address and name, only those who have joined", async () => {
      for (const query of ["ada@example.com", "ADA@example.com", "ada@ex", "ada", "lovelace", "Ädá"]) {
        const found = await ask("owner", query);
        const match = query === "lovelace" || query === "Ädá" ? Match.WORDS : Match.EMAIL;
        const expected = query === "Ädá" ? [] : [[people.ada, "Ada Lovelace", "ada@example.com", match]];
        assert.deepEqual(
          found.map((one) => [one.uid, one.name, one.detail, one.match]),
          expected,
          query,
        );
        assert.deepEqual(await uids("guest", query), []);
        assert.deepEqual(await uids("theirs", query), []);
      }
      for (const query of ["unconfirmed", "unconfirmed@example.com", people.unconfirmed, "foreign@example.com"])
        assert.deepEqual(await uids("owner", query), [], query);
      assert.deepEqual(await uids("theirs", "foreign@example.com"), [people.foreign]);
      assert.deepEqual(await uids("owner", people.ada), [people.ada]);
    });

    it("finds audit events by the id of their request, where the log may be read", async () => {
      const found = await ask("owner", requestId.toUpperCase());
      assert.deepEqual(
        found.map((one) => [one.kind, one.name, one.detail, one.group, one.match]),
        [[FoundKind.AUDIT_EVENT, "/x.Y/Changed", ours.api, ours.api, Match.REQUEST_ID]],
      );
      const byId = await ask("owner", found[0]?.uid ?? "");
      assert.deepEqual(
        byId.map(({ kind, match }) => [kind, match]),
        [[FoundKind.AUDIT_EVENT, Match.UID]],
      );
      for (const other of ["guest", "theirs", "nobody", "limited"] as const) {
        assert.deepEqual(await uids(other, requestId), other === "theirs" ? await uids("theirs", requestId) : []);
        assert.deepEqual(await uids(other, found[0]?.uid ?? ""), []);
      }
    });

    it("finds for each caller what its lists show", async () => {
      assert.deepEqual(await uids("guest", "api"), [ours.api]);
      assert.deepEqual(await uids("guest", "ours"), []);
      assert.deepEqual(await uids("guest", "ci"), []);
      assert.deepEqual(await uids("limited", "dev"), [ours.dev]);
      assert.deepEqual(await uids("limited", "api"), []);
      assert.deepEqual(await uids("pending", "dev"), []);
      assert.deepEqual(await uids("nobody", "api"), []);
      assert.deepEqual(await uids("theirs", "api"), [theirs.api]);
    });

    it("finds the new name of what was renamed, and nothing of what was deleted", async () => {
      const uid = childUid(ours.dev, 0x700);
      const write = (work: (tx: Tx) => Promise<unknown>) => platform.store.write(work);
      await write((tx) => tx.table(groupKind).insert(groupRow(uid, { name: "first-name x" })));
      assert.deepEqual(await uids("owner", "name fir"), [uid]);
      await write((tx) => tx.table(groupKind).update(uid, { name: "second-name" }, 2_000));
      assert.deepEqual(await uids("owner", "name sec"), [uid]);
      assert.deepEqual(await uids("owner", "first"), []);
      await write((tx) => tx.table(groupKind).replace(groupRow(uid, { name: "third" })));
      assert.deepEqual(await uids("owner", "thi"), [uid]);
      await write((tx) => tx.table(groupKind).delete(uid));
      assert.deepEqual(await uids("owner", "thi"), []);
      const stored = await platform.store.read((tx) =>
        tx.nameWords.find({ roots: [ours.root], kind: groupKind, prefix: "t", after: undefined, limit: 10 }),
      );
      assert.deepEqual(stored, []);
    });

    it("has every entry once, whatever the size of the pages", async () => {
      for (const query of ["ours", "placed", "pro", "a", "text", digest, ours.dev, requestId]) {
        const whole = (await ask("owner", query)).map(({ kind, uid }) => `${kind} ${uid}`);
        assert.equal(new Set(whole).size, whole.length, query);
        for (const pageSize of [1, 2, 3]) {
          const found = (await ask("owner", query, pageSize)).map(({ kind, uid }) => `${kind} ${uid}`);
          assert.deepEqual(found, whole, `${query} ${pageSize}`);
        }
      }
    });

    it("finds one kind alone, with pages of every size", async () => {
      for (const query of ["ours", "placed", "pro", "a", "text", digest, ours.dev, requestId]) {
        const whole = await ask("owner", query);
        for (const kind of new Set(whole.map((one) => one.kind))) {
          const expected = whole.filter((one) => one.kind === kind).map(({ uid }) => uid);
          for (const pageSize of [1, 200]) {
            const found = await ask("owner", query, pageSize, kind);
            assert.deepEqual(
              found.map(({ uid }) => uid),
              expected,
              `${query} ${FoundKind[kind]}`,
            );
          }
        }
      }
    });

    for (const [query, text] of [
      ["", "is required"],
      ["  \u3000", "is required"],
      ["a\u0001", "control"],
      ["a\nb", "control"],
      ["\ud800", "control"],
      ["a".repeat(1_001), "1000"],
      ["a b c d e f g h i j k l m n o p q", "16 words"],
    ] as const) {
      it(`refuses ${JSON.stringify(query.slice(0, 10))}`, async () => {
        await assert.rejects(ask("owner", query), (error) => {
          assert.ok(error instanceof ConnectError && error.code === Code.InvalidArgument);
          assert.match(error.message, new RegExp(text));
          return true;
        });
      });
    }
  });
}

async function fill(tx: Tx, uids: typeof ours, ownerUid: string): Promise<void> {
  const isOurs = uids === ours;
  const name = isOurs ? "ours.example" : "theirs.example";
  for (const [uid, group] of [
    [uids.root, name],
    [uids.prod, "prod"],
    [uids.api, "api"],
    [uids.dev, "dev"],
  ] as const)
    await tx.table(groupKind).insert(groupRow(uid, { name: group }));
  await tx.table(identityKind).insert(identityRow(ownerUid, { name: "somebody", email: "somebody@example.org" }));
  await tx.table(roleBindingKind).insert(bindingRow(childUid(uids.root, 0x900), ownerUid, owner, { automatic: true }));
  await tx.table(identityKind).insert(identityRow(uids.ci, { name: "ci-deploy eu", relation: 1 }));
  await tx.table(roleKind).insert(roleRow(uids.role, { groupUid: uids.root, name: "auditors" }));
  const ids = { newUid: () => uids.app, newId: () => "" };
  await tx.table(repoKind).insert(buildRepo(uids.prod, "app", { ids, nowMs: 1_000 }));
  const tag = { uid: uids.tag, repoUid: uids.app, name: "v1.0", family: 0, digest };
  await tx.table(tagKind).insert(tagRow(0, tag));
  const changed = { method: "/x.Y/Changed", subjectUid: uids.api, timeMs: 1_000, requestId };
  await tx.audit.append(auditRow(uids.root, changed));
  await tx.audit.append(auditRow(uids.root, { ...changed, requestId: "another" }));
}

async function fillPeople(tx: Tx): Promise<void> {
  const add = async (uid: string, values: object) => tx.table(identityKind).insert(identityRow(uid, values));
  let n = 0xa00;
  const bind = (at: string, uid: string, role: string, values: object = {}) =>
    tx.table(roleBindingKind).insert(bindingRow(childUid(at, n++), uid, role, values));
  await add(people.ada, { name: "Ada Lovelace", email: "ada@example.com" });
  for (const at of [ours.root, ours.prod, ours.api]) await bind(at, people.ada, viewer, { accepted: true });
  await add(people.unconfirmed, { name: "unconfirmed", email: "unconfirmed@example.com" });
  await bind(ours.root, people.unconfirmed, viewer);
  await add(people.foreign, { name: "foreign", email: "foreign@example.com" });
  await bind(ours.root, people.foreign, viewer);
  await bind(theirs.root, people.foreign, viewer, { accepted: true });
  for (const { identityUid } of [callers.guest, callers.pending, callers.nobody])
    await add(identityUid, { name: "somebody" });
  const groups = childUid(ours.root, 0x31);
  const capabilities = buildCapabilitySet(["groups.list"]);
  await tx.table(roleKind).insert(roleRow(groups, { groupUid: ours.root, name: "list", capabilities }));
  await bind(ours.prod, callers.guest.identityUid, groups);
  await bind(ours.root, callers.pending.identityUid, viewer, { pending: true });
}
