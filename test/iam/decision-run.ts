// Puts random questions to the real decision, store query included, and to the
// reference model, while the tree changes under both.
import { create } from "@bufbuild/protobuf";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { ApiError } from "../../src/kernel/errors.js";
import { isWithin } from "../../src/kernel/uidp.js";
import { authorize, bitOf, type Guard } from "../../src/pipeline/auth/authorize.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Tx } from "../../src/store/transaction.js";
import { createRandom } from "../support/openapi/random.js";
import { bindingRow, groupRow, identityRow, roleRow } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";
import { allows, emptyModel, type Model, visible } from "./reference-model.js";

/** What a run found. */
export interface DecisionRun {
  readonly decisions: number;
  readonly allowed: number;
  readonly differences: readonly string[];
  readonly mutations: number;
  readonly roots: number;
  readonly depth: number;
}

const ROOTS = 4;
const DECISIONS_PER_CHANGE = 40;
const MAX_GROUPS = 120;
const MAX_BINDINGS = 90;
const pool = [
  Capability.CAP_IAM_GROUPS_LIST,
  Capability.CAP_IAM_GROUPS_CREATE,
  Capability.CAP_IAM_GROUPS_DELETE,
  Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
  Capability.CAP_IAM_IDENTITY_LIST,
  Capability.CAP_REPO_LIST,
].map((capability) => ({ bit: bitOf(capability), name: Capability[capability] ?? "" }));

/** Asks `count` questions. `inherits: false` breaks the model, to show that differences are found. */
export async function runDecisions(count: number, seed: number, { inherits = true } = {}): Promise<DecisionRun> {
  const { chance, pick, text } = createRandom(seed);
  const model = emptyModel(inherits);
  const store = openSqlite({ directory: memoryDir(), clock: () => 0, exclusive: false });
  const differences: string[] = [];
  let [allowed, mutations, depth, decided] = [0, 0, 0, 0];
  const newUid = (parent?: string) => {
    const digits = parent === undefined ? 40 : 16;
    const segment = text("0123456789abcdef", digits, digits);
    return parent === undefined ? segment : `${parent}/${segment}`;
  };
  const groupsOf = () => [...model.groups.keys()];

  async function addGroup(tx: Tx, parent: string | undefined) {
    const uid = newUid(parent);
    model.groups.set(uid, parent);
    depth = Math.max(depth, uid.split("/").length);
    await tx.table(groupKind).insert(groupRow(uid));
  }
  async function addIdentity(tx: Tx) {
    const uid = newUid();
    model.identities.add(uid);
    await tx.table(identityKind).insert(identityRow(uid));
  }
  async function addRole(tx: Tx) {
    const uid = newUid();
    const bits = pool.filter(() => chance(0.9)).map(({ bit }) => bit);
    model.roles.set(uid, new Set(bits));
    await tx.table(roleKind).insert(roleRow(uid, { capabilities: toCapabilitySet(bits) }));
  }
  async function addBinding(tx: Tx) {
    const [group, identity, role] = [pick(groupsOf()), pick([...model.identities]), pick([...model.roles.keys()])];
    if (await tx.table(roleBindingKind).findSame(group, identity, role)) return;
    const uid = newUid(group);
    model.bindings.set(uid, { identity, role, group });
    await tx.table(roleBindingKind).insert(bindingRow(uid, identity, role));
  }
  async function dropBinding(tx: Tx, uid: string) {
    model.bindings.delete(uid);
    await tx.table(roleBindingKind).delete(uid);
  }

  const isLeaf = (group: string) => ![...model.groups.values()].includes(group);
  const bindingsOf = (key: "identity" | "role" | "group", value: string) =>
    [...model.bindings].filter(([, binding]) => binding[key] === value).map(([uid]) => uid);

  const changes: readonly ((tx: Tx) => Promise<void>)[] = [
    (tx) => (model.bindings.size < MAX_BINDINGS ? addBinding(tx) : dropBinding(tx, pick([...model.bindings.keys()]))),
    (tx) => addBinding(tx),
    (tx) => (model.bindings.size > 40 ? dropBinding(tx, pick([...model.bindings.keys()])) : addBinding(tx)),
    (tx) => (model.groups.size < MAX_GROUPS ? addGroup(tx, pick(groupsOf())) : Promise.resolve()),
    async (tx) => {
      const uid = pick(groupsOf().filter(isLeaf));
      if (!uid.includes("/")) return;
      for (const binding of bindingsOf("group", uid)) await dropBinding(tx, binding);
      model.groups.delete(uid);
      await tx.table(groupKind).delete(uid);
    },
    async (tx) => {
      const uid = pick([...model.identities]);
      model.identities.delete(uid);
      // Its bindings may stay: without the identity they must grant nothing.
      if (chance(0.5)) for (const binding of bindingsOf("identity", uid)) await dropBinding(tx, binding);
      await tx.table(identityKind).delete(uid);
      await addIdentity(tx);
    },
    async (tx) => {
      const uid = pick([...model.roles.keys()]);
      const bits = pool.filter(() => chance(0.9)).map(({ bit }) => bit);
      model.roles.set(uid, new Set(bits));
      await tx.table(roleKind).update(uid, { capabilities: toCapabilitySet(bits) }, 0);
    },
    async (tx) => {
      const uid = pick([...model.roles.keys()]);
      for (const binding of bindingsOf("role", uid)) await dropBinding(tx, binding);
      model.roles.delete(uid);
      await tx.table(roleKind).delete(uid);
      await addRole(tx);
    },
  ];

  const gone: string[] = [];
  async function decide(tx: Tx): Promise<void> {
    const identity = chance(0.03) && gone.length > 0 ? pick(gone) : pick([...model.identities]);
    const own = bindingsOf("identity", identity).map((uid) => model.bindings.get(uid)?.group ?? "");
    const near = own.length > 0 && chance(0.9) ? pick(own) : undefined;
    const groups = near === undefined ? groupsOf() : groupsOf().filter((group) => isWithin(group, near));
    const group = pick(groups);
    const capabilities = chance(0.7) ? [pick(pool)] : [pick(pool), pick(pool)];
    const scoped = chance(0.99);
    const guard: Guard = scoped ? { capabilities, scope } : { capabilities };
    const principal = { identityUid: identity, tokenId: "t", issuedAt: 1, expiresAt: 2 };
    const bits = capabilities.map(({ bit }) => bit);
    const request = create(GetGroupRequestSchema, { uid: group });
    let response: string;
    try {
      const caller = await authorize(guard, principal, request, tx);
      const maximal = scoped ? [] : caller.visibleGroups();
      response = scoped
        ? "yes"
        : groupsOf()
            .filter((one) => maximal.some((top) => isWithin(one, top)))
            .sort()
            .join(" ");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      response = "no";
    }
    const right = expectDecision(model, identity, bits, scoped ? group : undefined);
    decided++;
    if (response !== "no" && response !== "") allowed++;
    if (response !== right)
      differences.push(`decision ${decided}: ${identity} ${bits} at ${group}: ${response} for ${right}`);
  }

  await store.write(async (tx) => {
    for (let i = 0; i < ROOTS; i++) await addGroup(tx, undefined);
    for (let i = 0; i < ROOTS; i++) {
      let last = groupsOf()[i] ?? "";
      for (let level = 0; level < 7; level++) {
        await addGroup(tx, last);
        last = groupsOf().at(-1) ?? "";
      }
    }
    for (let i = 0; i < 40; i++) await addGroup(tx, pick(groupsOf()));
    for (let i = 0; i < 25; i++) await addIdentity(tx);
    for (let i = 0; i < 8; i++) await addRole(tx);
    for (let i = 0; i < 70; i++) await addBinding(tx);
  });
  while (decided < count && differences.length < 20) {
    await store.read(async (tx) => {
      for (let i = 0; i < DECISIONS_PER_CHANGE && decided < count; i++) await decide(tx);
    });
    const before = [...model.identities];
    await store.write((tx) => pick(changes)(tx));
    mutations++;
    gone.push(...before.filter((uid) => !model.identities.has(uid)));
  }
  await store.close();
  return { decisions: decided, allowed, differences, mutations, roots: ROOTS, depth };
}

const scope = { field: "uid", of: (request: object) => (request as { uid: string }).uid };

function expectDecision(model: Model, identity: string, bits: readonly number[], group: string | undefined): string {
  if (!model.identities.has(identity)) return "no";
  if (group === undefined) return visible(model, identity, bits).join(" ");
  return allows(model, identity, bits, group) ? "yes" : "no";
}
