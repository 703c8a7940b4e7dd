// An organisation that has reached its quotas, or a share of them, with as much as possible in one place: one group with
// all identities, one repo with all tags, one identity with as many bindings as it may have.
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { defaultLimits, type QuotaKind } from "../../src/kernel/quotas.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import { overlayBindingKind } from "../../src/store/registry/overlay-bindings.js";
import { overlayKind } from "../../src/store/registry/overlays.js";
import { repoKind } from "../../src/store/registry/repos.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { insertGroup, type Placed } from "../iam/populate.js";
import {
  bindingRow,
  childUid,
  groupRow,
  identityRow,
  overlayBindingRow,
  overlayRow,
  roleRow,
} from "../support/rows.js";
import { createAdvisory, createTag } from "./registry-things.js";

/** What is in the organisation that calls are about. */
export interface FullOrganisation {
  /** The group that everything lies in, besides the groups below it. */
  readonly placed: Placed;
  /** An identity with as many bindings as it may have. */
  readonly bound: string;
  /** The people of the identity provider of `placed`. */
  readonly people: readonly string[];
}

const BATCH = 500;

/**
 * Fills an organisation.
 *
 * @param share of each default limit, from 0 to 1
 * @param most how many of a kind at most
 */
export async function fillOrganisation(
  store: Store,
  root: string,
  share: number,
  most = Number.POSITIVE_INFINITY,
): Promise<FullOrganisation> {
  const count = (kind: QuotaKind) => Math.min(most, Math.max(10, Math.floor(defaultLimits[kind] * share)));
  const many = async (total: number, insert: (tx: Tx, n: number) => Promise<unknown> | unknown) => {
    for (let from = 1; from <= total; from += BATCH) {
      await store.write(async (tx) => {
        for (let n = from; n < from + BATCH && n <= total; n++) await insert(tx, n);
      });
    }
  };
  const top = randomIds.newUid(root);
  const placed = await store.write((tx) => insertGroup(tx, top, { name: "full", text: "text" }));
  const { role, repo, identityProvider } = placed;
  const bound = randomIds.newUid(root);
  const relationship = { claimMatch: { issuer: "https://issuer.example", subject: "bound" } };
  await store.write((tx) => tx.table(identityKind).insert(identityRow(bound, { relation: 1, relationship })));
  await many(count("groups"), (tx, n) =>
    tx.table(groupKind).insert(groupRow(childUid(top, n), { name: `group ${n}` })),
  );
  const ofProvider = Math.floor(count("identities") / 2);
  const people: string[] = [];
  await many(count("identities") - ofProvider, (tx, n) =>
    tx
      .table(identityKind)
      .insert(identityRow(randomIds.newUid(top), { name: `identity ${n}`, relation: 1, relationship })),
  );
  await many(ofProvider, (tx, n) => {
    const uid = randomIds.newUid();
    people.push(uid);
    return tx.table(identityKind).insert(identityRow(uid, { name: `person ${n}`, providerUid: identityProvider }));
  });
  await many(count("roles"), (tx, n) =>
    tx.table(roleKind).insert(roleRow(randomIds.newUid(top), { groupUid: top, name: `role ${n}` })),
  );
  const limit = count("identityBindings");
  await many(limit, (tx, n) => {
    const group = childUid(top, 1 + (n % count("groups")));
    return tx
      .table(roleBindingKind)
      .insert(bindingRow(randomIds.newUid(group), bound, n <= count("groups") ? role : builtinRoleUid("viewer")));
  });
  await many(count("bindings") - limit, (tx, n) => {
    const group = n % 2 === 0 ? top : childUid(top, 1 + (n % count("groups")));
    const roleUid = n % 3 === 0 ? role : builtinRoleUid("viewer");
    return tx
      .table(roleBindingKind)
      .insert(bindingRow(randomIds.newUid(group), people[n] ?? randomIds.newUid(), roleUid));
  });
  await many(count("invites"), (tx, n) =>
    tx.table(groupInviteKind).insert({
      uid: randomIds.newUid(top),
      ...{ groupUid: top, roleUid: role, email: "", singleUse: false, createdBy: "", codeHash: "" },
      keyId: n.toString(16).padStart(16, "0"),
      // Half of them have expired.
      expireTimeMs: n % 2 === 0 ? 1_000 : 4_000_000_000_000,
      ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
    }),
  );
  await many(count("providers"), (tx, n) =>
    tx.table(identityProviderKind).insert({
      uid: randomIds.newUid(top),
      ...{
        groupUid: top,
        name: `provider ${n}`,
        description: "",
        defaultRole: role,
        lacksDefaultRole: false,
        sealedSecret: "",
      },
      oidc: { issuer: `https://login-${n}.example` },
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "e" },
      ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
    }),
  );
  await many(count("mappings"), (tx, n) =>
    tx.table(groupMappingKind).insert({
      uid: randomIds.newUid(identityProvider),
      providerUid: identityProvider,
      externalGroupId: `external ${n}`,
      ...{ roleUid: role, scope: top, createdBy: null, createTimeMs: 1_000 },
    }),
  );
  await many(count("subscriptions"), (tx, n) =>
    tx.table(subscriptionKind).insert({
      uid: randomIds.newUid(top),
      ...{ groupUid: top, sink: `https://sink.example/${n}`, createTimeMs: 1_000, updateTimeMs: 1_000 },
    }),
  );
  await many(count("repos"), async (tx, n) => {
    const like = await tx.table(repoKind).find(repo);
    if (like) await tx.table(repoKind).insert({ ...like, uid: randomIds.newUid(top), name: `repo-${n}` });
  });
  await many(count("tags"), (tx, n) => createTag(tx, repo, `tag-${n}`));
  const overlays: string[] = [];
  await many(count("overlays"), (tx, n) => {
    const uid = randomIds.newUid(top);
    overlays.push(uid);
    return tx.table(overlayKind).insert(overlayRow(uid, { name: `overlay ${n}` }));
  });
  await many(count("overlayBindings"), (tx, n) => {
    const overlay = overlays[n % overlays.length] ?? "";
    const row = overlayBindingRow(randomIds.newUid(repo), overlay, { tags: [`tag-${n}`] });
    return tx.table(overlayBindingKind).insert(row);
  });
  await many(count("advisories"), (tx, n) => createAdvisory(tx, top, `advisory-${n}`));
  return { placed, bound, people };
}
