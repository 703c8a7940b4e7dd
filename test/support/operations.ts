// A long list of random operations on the IAM domain, reproducible by seed, and a dump of the database after it.

import { ConnectError } from "@connectrpc/connect";
import { builtinRoleUid, type Ids } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { identityKind } from "../../src/store/iam/identities.js";
import type { Store } from "../../src/store/store.js";
import { inProcess } from "./in-process.js";
import { createRandom } from "./openapi/random.js";
import { identityRow, rootUid } from "./rows.js";

const IAM = "/chainguard.platform.iam.v2beta1";
const names = ["a", "a b", "a-b", "ab", "_", "z.9", "prod", "dev"];

/** Ids in sequence from 1, so that two runs create the same ids. */
function createSequentialIds(): Ids {
  let count = 0;
  const hex = (digits: number) => (++count).toString(16).padStart(digits, "0");
  return { newUid: (parent) => (parent ? `${parent}/${hex(16)}` : hex(40)), newId: () => hex(32) };
}

/**
 * Runs `count` operations on the empty store that `open` opens with the given clock, and closes it. Returns the
 * result of each: `ok` or the text of the error.
 */
export async function runOperations(
  open: (clock: () => number) => Store | Promise<Store>,
  seed: number,
  count: number,
): Promise<string[]> {
  let now = 1_700_000_000_000;
  const store = await open(() => now);
  const call = await inProcess(store, createSequentialIds(), () => now);
  const random = createRandom(seed).int;
  const pick = <T>(list: readonly T[], otherwise: T): T => list[random(list.length)] ?? otherwise;
  const owner = rootUid(0xabc);
  await store.write((tx) => tx.table(identityKind).insert(identityRow(owner)));

  const uids = {
    groups: [] as string[],
    identities: [owner],
    roles: [builtinRoleUid("viewer")],
    bindings: [] as string[],
  };
  const results: string[] = [];
  const run = async (service: string, method: string, request: object, into?: string[]) => {
    try {
      const { uid } = (await call(
        `${IAM}.${service}/${method}`,
        random(5) ? owner : pick(uids.identities.slice(0, 3), owner),
        request,
      )) as { uid?: string };
      if (into && uid) into.push(uid);
      results.push("ok");
    } catch (error) {
      results.push(`${method}: ${ConnectError.from(error).rawMessage}`);
    }
  };

  for (let i = 0; i < count; i++) {
    now += random(3);
    const name = pick(names, "a");
    const group = pick(uids.groups, owner);
    const identity = pick(uids.identities, owner);
    const [identityUid, roleUid] = [identity, random(4) === 0 ? builtinRoleUid("owner") : pick(uids.roles, owner)];
    const uid = pick(uids.bindings, group);
    switch (random(14)) {
      case 0:
        await run("GroupsService", "CreateGroup", { parent: "", group: { name } }, uids.groups);
        break;
      case 1:
      case 2:
      case 3:
        await run("GroupsService", "CreateGroup", { parent: group, group: { name, description: name } }, uids.groups);
        break;
      case 4:
        await run("GroupsService", "UpdateGroup", { group: { uid: group, name } });
        break;
      case 5:
        await run("GroupsService", "DeleteGroup", { uid: group });
        break;
      case 6:
      case 7: {
        const relationship = {
          case: "claimMatch",
          value: { iss: { case: "issuer", value: "https://i.example" }, sub: { case: "subject", value: name } },
        };
        await run(
          "IdentitiesService",
          "CreateIdentity",
          { parent: group, identity: { name, relationship } },
          uids.identities,
        );
        break;
      }
      case 8:
        await run("IdentitiesService", "DeleteIdentity", { uid: identity });
        break;
      case 9:
        await run(
          "RolesService",
          "CreateRole",
          { parent: group, role: { name, capabilities: [103, 101 + random(3)] } },
          uids.roles,
        );
        break;
      case 10:
      case 11:
        await run(
          "RoleBindingsService",
          "CreateRoleBinding",
          { parent: group, roleBinding: { identityUid, roleUid } },
          uids.bindings,
        );
        break;
      case 12:
        await run("RoleBindingsService", "UpdateRoleBinding", { roleBinding: { uid, identityUid, roleUid } });
        break;
      default:
        await run("RoleBindingsService", "DeleteRoleBinding", {
          uid: random(2) ? uid : `${parentOf(uid) ?? uid}/${"0".repeat(16)}`,
        });
    }
  }
  await store.close();
  return results;
}

/** Reads all rows of a table, as objects by column name. */
export type ReadTable = (table: string) => Promise<Record<string, unknown>[]>;

const tables = ["groups", "identities", "roles", "role_bindings", "counters", "audit"];

/** The rows of all tables, in the same order and format for every database. */
export async function dump(read: ReadTable): Promise<string[]> {
  const lines: string[] = [];
  for (const table of tables) {
    const found = await read(table);
    const rows = table === "counters" ? sumSlots(found) : found;
    lines.push(
      ...rows
        .map(
          (row) =>
            `${table} ${JSON.stringify(
              Object.entries(row)
                .filter(([k]) => k !== "body_hash")
                .map(([k, v]) => [k, k === "body" ? withoutSalt(String(v)) : normalizeValue(v)])
                .sort(),
            )}`,
        )
        .sort(),
    );
  }
  return lines;
}

// The salt of a body is random, and its hash with it.
function withoutSalt(body: string): string {
  return body.replace(/"salt":"[\w-]+"/, "");
}

// On PostgreSQL a counter is the sum of several rows.
function sumSlots(rows: Record<string, unknown>[]): Record<string, unknown>[] {
  const sums = new Map<string, number>();
  for (const { counter, scope, n } of rows)
    sums.set(`${counter} ${scope}`, (sums.get(`${counter} ${scope}`) ?? 0) + Number(n));
  return [...sums].filter(([, n]) => n !== 0).map(([counter, n]) => ({ counter, n }));
}

function normalizeValue(value: unknown): unknown {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string" && /^\d{1,18}$/.test(value)) return Number(value);
  if (typeof value === "string" && value.startsWith("{")) return JSON.stringify(JSON.parse(value));
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}
