// An organisation with callers of any rights, for tests of the domain over REST.
import { randomBytes } from "node:crypto";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import type { Tx } from "../../src/store/transaction.js";
import { type Rest, restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { groupRow, identityRow, roleRow } from "../support/rows.js";

/** A caller. */
export interface Somebody {
  readonly uid: string;
  readonly token: string;
  readonly rest: Rest;
}

/** A service with two organisations. */
export interface IamWorld {
  readonly harness: Harness;
  readonly url: string;
  /** Root groups: the own one with the groups `child` and, below it, `grandchild`; and another organisation's. */
  readonly root: string;
  readonly child: string;
  readonly grandchild: string;
  readonly foreign: string;
  readonly owner: Somebody;
  readonly foreignOwner: Somebody;
  /** A new custom role with these capabilities, by dotted names. */
  role(capabilities: readonly string[], group?: string): Promise<string>;
  /** A new person bound to a new role with these capabilities. */
  caller(capabilities: readonly string[], group?: string): Promise<Somebody>;
  /** A new person bound to a built-in role. */
  createBound(role: string, group?: string): Promise<Somebody>;
  /** A new identity of a group, with a claim match of its own. */
  identity(group?: string): Promise<string>;
  /** A new group. */
  group(parent?: string): Promise<string>;
  write<T>(unit: (tx: Tx) => Promise<T>): Promise<T>;
  stop(): Promise<void>;
}

/** A claim match that nothing else has. */
export function claimMatch(): { issuer: string; subject: string } {
  return { issuer: "https://issuer.example", subject: randomBytes(4).toString("hex") };
}

/** What version 1 prints of a claim match besides what it was given. */
export const noClaims = { claims: {}, claimPatterns: {} };

/**
 * Starts the service.
 *
 * @param settings see {@link startHarness}
 */
export async function startIamWorld(...settings: Parameters<typeof startHarness>): Promise<IamWorld> {
  const harness = await startHarness(...settings);
  const { url } = harness;
  const { store } = harness.app.installation;
  const write: IamWorld["write"] = (unit) => store.write(unit);
  const [ours, theirs] = [await harness.organisation("ours"), await harness.organisation("theirs")];
  const root = ours.group;
  const group = async (parent = root) => {
    const uid = randomIds.newUid(parent);
    await write((tx) => tx.table(groupKind).insert(groupRow(uid)));
    return uid;
  };
  const role = async (capabilities: readonly string[], at = root) => {
    const uid = randomIds.newUid(at);
    const row = roleRow(uid, { groupUid: at, capabilities: buildCapabilitySet(capabilities) });
    await write((tx) => tx.table(roleKind).insert(row));
    return uid;
  };
  const somebody = ({ uid, token }: { uid: string; token: string }) => ({ uid, token, rest: restAs(url, token) });
  const child = await group();
  return {
    harness,
    url,
    root,
    child,
    grandchild: await group(child),
    foreign: theirs.group,
    owner: somebody({ uid: ours.identity, token: ours.token }),
    foreignOwner: somebody({ uid: theirs.identity, token: theirs.token }),
    role,
    group,
    write,
    async caller(capabilities, at = root) {
      const person = await harness.identity();
      const roleUid = await role(capabilities, at);
      const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
      const binding = {
        uid: randomIds.newUid(at),
        groupUid: at,
        identityUid: person.uid,
        roleUid,
        automatic: false,
        accepted: false,
        managedByUid: null,
        endTimeMs: null,
        pending: false,
        ...times,
      };
      await write((tx) => tx.table(roleBindingKind).insert(binding));
      return somebody(person);
    },
    async createBound(name, at = root) {
      const person = await harness.identity();
      await harness.bind(person.uid, name, at);
      return somebody(person);
    },
    async identity(at = root) {
      const uid = randomIds.newUid(at);
      await write((tx) =>
        tx.table(identityKind).insert(identityRow(uid, { relation: 1, relationship: { claimMatch: claimMatch() } })),
      );
      return uid;
    },
    stop: () => harness.stop(),
  };
}
