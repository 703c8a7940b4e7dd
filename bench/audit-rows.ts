// What the body of an audit row costs, on SQLite: processor time per call of the pipeline, and bytes per row on disk:
//
//   node --import tsx bench/audit-rows.ts [COUNT]
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createPlatformServices } from "../src/app/services.js";
import { buildCapabilitySet, isCapabilityName } from "../src/iam/roles/capability-names.js";
import { builtinRoleUid, randomIds } from "../src/kernel/ids.js";
import { defaultLimits } from "../src/kernel/quotas.js";
import { type Inbound, UnaryCall } from "../src/pipeline/call.js";
import { createInvoke } from "../src/pipeline/invoke.js";
import { createMethodTable, type UnaryEntry } from "../src/pipeline/method-table.js";
import { createQuotas } from "../src/pipeline/resource/quota.js";
import { groupKind } from "../src/store/iam/groups.js";
import { identityKind } from "../src/store/iam/identities.js";
import { roleBindingKind } from "../src/store/iam/role-bindings.js";
import { roleKind } from "../src/store/iam/roles.js";
import { openDatabase } from "../src/store/sqlite/driver.js";
import { openSqlite } from "../src/store/sqlite/open.js";
import { bindingRow, childUid, groupRow, identityRow, roleRow, rootUid } from "../test/support/rows.js";
import { tempDir } from "../test/support/temp-dir.js";

const COUNT = Number(process.argv[2] ?? 8_000);
const TURN = 250;
const [root, role, caller] = [rootUid(1), rootUid(2), rootUid(3)];
const group = childUid(root, 1);

const directory = tempDir();
const store = openSqlite({ directory });
const names = ["groups", "identity", "roles", "role_bindings"].flatMap((kind) =>
  ["create", "update", "list", "delete"].map((verb) => `${kind}.${verb}`),
);
await store.write(async (tx) => {
  await tx.table(groupKind).insert(groupRow(root));
  await tx.table(groupKind).insert(groupRow(group));
  await tx.table(roleKind).insert(roleRow(role, { capabilities: buildCapabilitySet(names.filter(isCapabilityName)) }));
  for (const name of ["viewer", "editor", "owner"])
    await tx.table(roleKind).insert(roleRow(builtinRoleUid(name), { name, groupUid: null }));
  await tx.table(identityKind).insert(identityRow(caller, { name: "caller" }));
  await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 9), caller, role));
  await tx.table(roleBindingKind).insert(bindingRow(childUid(root, 10), caller, builtinRoleUid("owner")));
  for (let i = 0; i < COUNT; i++)
    await tx.table(identityKind).insert(identityRow(childUid(root, 1_000_000 + i), { name: `i${i}` }));
});
const table = createMethodTable(
  createPlatformServices({
    tokens: { create: () => "", read: async () => undefined },
    ...{
      ids: randomIds,
      seal: async () => "",
      rootCreation: "users",
      limits: defaultLimits,
      quotas: createQuotas(defaultLimits),
      trustedIssuers: [],
      baseUrl: "https://iam.example",
    },
    ...{ registry: undefined, store },
  }),
);
const invoke = createInvoke({
  store,
  clock: Date.now,
  errorDomain: "bench",
  onInternalError: (error) => console.error(error),
});
const seconds = Math.floor(Date.now() / 1000);
const principal = { identityUid: caller, tokenId: "t", issuedAt: seconds, expiresAt: seconds + 3_600 };
let requests = 0;

type Kind = "with" | "without";

// The same method, with its body and without.
function call(path: string, kind: Kind, request: object): Promise<object> {
  const entry = table.get(`/chainguard.platform.iam.v2.${path}`) as UnaryEntry;
  const { body: _, ...bare } = entry;
  const inbound = {
    ...{ protocol: "grpc", fieldSpelling: "json", method: "POST", url: "", requestId: `request-${requests++}` },
    ...{ remoteAddress: "192.0.2.7", header: () => undefined, headers: () => new Headers() },
  } as unknown as Inbound;
  const message = create(entry.desc.input, request as never);
  return invoke(kind === "with" ? entry : bare, new UnaryCall(inbound, entry.desc, Date.now()), principal, message);
}

/** Calls in turns of some with bodies and some without, so that what else the machine does meets both. */
async function measure(name: string, work: (i: number, kind: Kind) => Promise<unknown>): Promise<void> {
  const us: Record<Kind, number[]> = { with: [], without: [] };
  const bytes: Record<Kind, number> = { with: 0, without: 0 };
  for (let i = 0, turn = 0; i < COUNT; turn++) {
    const kind: Kind = turn % 2 === 0 ? "with" : "without";
    const before = sizeOf();
    const used = process.cpuUsage();
    const end = Math.min(COUNT, i + TURN);
    const count = end - i;
    for (; i < end; i++) await work(i, kind);
    const { user, system } = process.cpuUsage(used);
    if (turn >= 4) us[kind].push((user + system) / count);
    bytes[kind] += sizeOf() - before;
  }
  const perCall = { with: median(us.with), without: median(us.without) };
  const perRow = { with: (2 * bytes.with) / COUNT, without: (2 * bytes.without) / COUNT };
  console.log(
    `${name}: ${perCall.without.toFixed(0)} us of the processor, ${perCall.with.toFixed(0)} with a body ` +
      `(${(perCall.with / perCall.without).toFixed(2)}); ${perRow.without.toFixed(0)} bytes of audit rows and their ` +
      `indexes, ${perRow.with.toFixed(0)} with a body`,
  );
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

function sizeOf(): number {
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  try {
    return Number(db.prepare("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'audit%'").pluck().get());
  } finally {
    db.close();
  }
}

const made: string[] = [];
const [viewer, editor] = [builtinRoleUid("viewer"), builtinRoleUid("editor")];
const identityAt = (i: number) => childUid(root, 1_000_000 + i);
await measure("create a group", (i, kind) =>
  call("GroupsService/CreateGroup", kind, { parent: group, group: { name: `g${i}` } }),
);
await measure("bind a role", async (i, kind) => {
  const roleBinding = { identityUid: identityAt(i), roleUid: viewer };
  const response = await call("RoleBindingsService/CreateRoleBinding", kind, { parent: group, roleBinding });
  made.push((response as { uid: string }).uid);
});
await measure("change a role", (i, kind) =>
  call("RoleBindingsService/UpdateRoleBinding", kind, { roleBinding: { uid: made[i], roleUid: editor } }),
);
await measure("unbind a role", (i, kind) => call("RoleBindingsService/DeleteRoleBinding", kind, { uid: made[i] }));
await store.close();
