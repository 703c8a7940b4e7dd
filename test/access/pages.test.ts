// Pages of AccessService under changes, and over many groups.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import type { Principal } from "../../src/kernel/principal.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { principalOf } from "../support/in-process.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../support/rows.js";
import { type OpenedPlatform, openPlatform } from "./platform.js";

const [owner, viewer, editor] = ["owner", "viewer", "editor"].map(builtinRoleUid) as [string, string, string];
const roots = Array.from({ length: 200 }, (_, i) => rootUid(0xa00 + i));
const asker = principalOf(personUid("https://l.example", "asker"));
const person = personUid("https://l.example", "person");
const askerBinding = (root: string) => childUid(root, 0x9000);

let platform: OpenedPlatform;
// biome-ignore lint/suspicious/noExplicitAny: several messages
const ask = async (who: Principal, method: string, request: object): Promise<any> =>
  platform.call(`/${AccessService.typeName}/${method}`, who, request);

before(async () => {
  platform = await openPlatform();
  await platform.store.write(async (tx) => {
    for (const uid of [asker.identityUid, person])
      await tx.table(identityKind).insert(identityRow(uid, { name: "somebody" }));
    for (const [i, root] of roots.entries()) {
      await tx.table(groupKind).insert(groupRow(root, { name: `g${i}` }));
      await tx
        .table(roleBindingKind)
        .insert(bindingRow(askerBinding(root), asker.identityUid, owner, { accepted: true }));
      const joined = i === roots.length - 1 ? { accepted: true } : {};
      for (const [j, role] of [viewer, editor].entries())
        await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 0x7000 + j), person, role, joined));
    }
  });
});
after(() => platform.close());

async function readAll(method: string, request: object, between?: (page: number) => Promise<void>) {
  // biome-ignore lint/suspicious/noExplicitAny: several messages
  const all: any[] = [];
  let pageToken = "";
  let pages = 0;
  do {
    const found = await ask(asker, method, { ...request, pageToken });
    all.push(...(found.grants ?? found.subjects ?? found.resources));
    pageToken = found.nextPageToken;
    assert.ok(++pages < 3_000, "the pages do not end");
    await between?.(pages);
  } while (pageToken !== "");
  return { all };
}

test("ListAccess knows a person who has joined any of many groups that the caller sees", async () => {
  const [last = ""] = roots.slice(-1);
  const there = await ask(asker, "ListAccess", { identity: person, group: last });
  const everywhere = await ask(asker, "ListAccess", { identity: person });
  assert.deepEqual([there.unconfirmed, everywhere.unconfirmed], [false, false]);
});

for (const pageSize of [1, 7, 200]) {
  test(`ListAccess, ${pageSize} a page, lists every grant once over 200 groups`, async () => {
    const { all } = await readAll("ListAccess", { identity: person, pageSize });
    const uids = all.map((one) => one.roleBinding);
    assert.equal(uids.length, 400);
    assert.equal(new Set(uids).size, 400);
  });
}

test("ListAccess ends, and neither skips nor repeats, while rights come and go", async () => {
  const flipped = roots[100] as string;
  let present = true;
  const { all } = await readAll("ListAccess", { identity: person, pageSize: 3 }, async () => {
    await platform.store.write(async (tx) => {
      if (present) await tx.table(roleBindingKind).delete(askerBinding(flipped));
      else
        await tx
          .table(roleBindingKind)
          .insert(bindingRow(askerBinding(flipped), asker.identityUid, owner, { accepted: true }));
    });
    present = !present;
  });
  const uids = all.map((one) => one.roleBinding);
  assert.equal(new Set(uids).size, uids.length);
  const always = roots.filter((one) => one !== flipped).flatMap((one) => [0x7000, 0x7001].map((n) => childUid(one, n)));
  assert.deepEqual(
    always.filter((uid) => !uids.includes(uid)),
    [],
  );
  await platform.store.write(async (tx) => {
    if (!present)
      await tx
        .table(roleBindingKind)
        .insert(bindingRow(askerBinding(flipped), asker.identityUid, owner, { accepted: true }));
  });
});

test("ListSubjects ends, and neither skips nor repeats, while subjects come and go, with a subject of 700 roles", async () => {
  const [root = ""] = roots;
  const team = childUid(root, 1);
  const robots = Array.from({ length: 60 }, (_, i) => childUid(root, 0x100 + i));
  await platform.store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(team, { name: "team" }));
    const capabilities = buildCapabilitySet(["repo.list"]);
    for (const [i, uid] of robots.entries()) {
      await tx.table(identityKind).insert(identityRow(uid, { name: `robot${i}` }));
      await tx.table(roleBindingKind).insert(bindingRow(childUid(team, 0x5000 + i), uid, viewer));
    }
    for (let j = 0; j < 700; j++) {
      const role = childUid(root, 0x20000 + j);
      await tx.table(roleKind).insert(roleRow(role, { groupUid: root, name: `r${j}`, capabilities }));
      for (const at of [root, team])
        await tx.table(roleBindingKind).insert(bindingRow(childUid(at, 0x30000 + j), robots[30] as string, role));
    }
  });
  for (const pageSize of [1, 5, 200]) {
    let there = true;
    const { all } = await readAll(
      "ListSubjects",
      { actions: ["repo.list"], resource: team, pageSize },
      async (page) => {
        const n = (page * 7) % 20;
        await platform.store.write(async (tx) => {
          if (there) await tx.table(roleBindingKind).delete(childUid(team, 0x5000 + n));
          else
            await tx
              .table(roleBindingKind)
              .insert(
                bindingRow(
                  childUid(team, 0x5000 + (((page - 1) * 7) % 20)),
                  robots[((page - 1) * 7) % 20] as string,
                  viewer,
                ),
              );
        });
        there = !there;
      },
    );
    const uids = all.map(({ subject }) => subject.value.uid);
    assert.equal(new Set(uids).size, uids.length);
    for (const uid of robots.slice(20)) assert.ok(uids.includes(uid), uid);
    await platform.store.write(async (tx) => {
      for (let i = 0; i < 20; i++) {
        if ((await tx.table(roleBindingKind).find(childUid(team, 0x5000 + i))) === undefined)
          await tx.table(roleBindingKind).insert(bindingRow(childUid(team, 0x5000 + i), robots[i] as string, viewer));
      }
    });
  }
});

test("SearchNames ends for every prefix", async () => {
  for (const prefix of [
    "g",
    "g1",
    "G",
    " ",
    "g ",
    "~",
    "\u{1f600}",
    "g\u{1f600}",
    "\u{ffff}",
    "\u{10ffff}",
    "a".repeat(1_000),
    "\u{1f600}".repeat(500),
    "%",
    "_",
    "\\",
  ]) {
    for (const pageSize of [1, 200]) {
      const { all } = await readAll("SearchNames", { prefix, pageSize });
      const expected = prefix === "g" ? 200 : prefix === "g1" ? 111 : 0;
      assert.equal(
        new Set(all.map(({ uid }) => uid)).size,
        expected,
        `${JSON.stringify(prefix.slice(0, 9))} ${pageSize}`,
      );
      assert.equal(all.length, expected);
    }
  }
});

test("ListAccess lists the mappings of a person whom the caller knows, however many groups it sees", async () => {
  const [last = ""] = roots.slice(-1);
  const provider = childUid(last, 0x10);
  const member = personUid("https://l.example", "member");
  await platform.store.write(async (tx) => {
    await tx.table(identityProviderKind).insert({
      ...{ uid: provider, groupUid: last, name: "provider", description: "", defaultRole: viewer },
      oidc: { issuer: "https://acme.example", clientId: "acme" },
      lacksDefaultRole: false,
      sealedSecret: "",
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
      createTimeMs: 1_000,
      updateTimeMs: 1_000,
    });
    await tx.table(identityKind).insert(identityRow(member, { name: "member", providerUid: provider }));
    await tx.table(roleBindingKind).insert(bindingRow(childUid(last, 0x7800), member, viewer, { accepted: true }));
    const mapping = { uid: childUid(provider, 0x30), providerUid: provider, externalGroupId: "x", scope: last };
    await tx.table(groupMappingKind).insert({ ...mapping, roleUid: viewer, createdBy: null, createTimeMs: 1_000 });
  });
  const there = await readAll("ListAccess", { identity: member, group: last });
  const everywhere = await readAll("ListAccess", { identity: member });
  const mappingsOf = ({ all }: { all: { mapping: string }[] }) => all.filter((one) => one.mapping !== "").length;
  assert.deepEqual([mappingsOf(there), mappingsOf(everywhere)], [1, 1]);
});
