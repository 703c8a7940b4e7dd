// A long list of random operations on the IAM domain, the same for the same
// seed, and a dump of all that a database holds afterwards.
import { ConnectError } from "@connectrpc/connect";
import { builtinRoleUid, type Ids } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import type { Store } from "../../src/store/port.js";
import { inProcess } from "./in-process.js";
import { identityRow, rootUid } from "./rows.js";

const IAM = "/chainguard.platform.iam.v2beta1";
const names = ["a", "a b", "a-b", "ab", "_", "z.9", "prod", "dev"];

/** Numbers that look random and are the same for the same seed: `next(n)` is one from 0 to n - 1. */
export function seeded(seed: number): (n: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (n) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** Ids counted from 1, so that two runs give the same. */
function countedIds(): Ids {
  let count = 0;
  const hex = (digits: number) => (++count).toString(16).padStart(digits, "0");
  return { newUid: (parent) => (parent ? `${parent}/${hex(16)}` : hex(40)), newId: () => hex(32) };
}

/**
 * Runs `count` operations on the empty store that `open` opens with the clock it is given, and closes
 * it; answers what each came to: `ok` or the error's text.
 */
export async function runOperations(
  open: (clock: () => number) => Store | Promise<Store>,
  seed: number,
  count: number,
): Promise<string[]> {
  let now = 1_700_000_000_000;
  const store = await open(() => now);
  const call = await inProcess(store, countedIds(), () => now);
  const random = seeded(seed);
  const pick = <T>(list: readonly T[], otherwise: T): T => list[random(list.length)] ?? otherwise;
  const owner = rootUid(0xabc);
  await store.write((tx) => tx.identities.insert(identityRow(owner)));

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

/** How a database's tables are read: all rows of a table, as objects by column name. */
export type ReadTable = (table: string) => Promise<Record<string, unknown>[]>;

const tables = ["groups", "identities", "roles", "role_bindings", "text_order", "time_order", "counters", "audit"];

/** Everything stored, in one order and one spelling whatever the database. */
export async function dump(read: ReadTable): Promise<string[]> {
  const lines: string[] = [];
  for (const table of tables) {
    const rows = table === "counters" ? summed(await read(table)) : await read(table);
    lines.push(
      ...rows
        .map(
          (row) =>
            `${table} ${JSON.stringify(
              Object.entries(row)
                .map(([k, v]) => [k, spelled(v)])
                .sort(),
            )}`,
        )
        .sort(),
    );
  }
  return lines;
}

// What a counter is on one database one row is on another the sum of many.
function summed(rows: Record<string, unknown>[]): Record<string, unknown>[] {
  const sums = new Map<string, number>();
  for (const { counter, scope, n } of rows)
    sums.set(`${counter} ${scope}`, (sums.get(`${counter} ${scope}`) ?? 0) + Number(n));
  return [...sums].filter(([, n]) => n !== 0).map(([counter, n]) => ({ counter, n }));
}

function spelled(value: unknown): unknown {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "string" && /^\d{1,18}$/.test(value)) return Number(value);
  if (typeof value === "string" && value.startsWith("{")) return JSON.stringify(JSON.parse(value));
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}
