// The commands for operator roles. Running servers use a new role from the next call on.
import type { Settings } from "../../config/config.js";
import {
  createOperatorRole,
  deleteOperatorRole,
  listOperatorRoles,
  type NewOperatorRole,
  type OperatorRole,
} from "../../iam/operator/roles.js";
import { capabilityNamesIn } from "../../iam/roles/capability-names.js";
import { randomIds } from "../../kernel/ids.js";
import { escapeControls } from "../output/escape.js";
import { createTable } from "../output/table.js";
import { onHost, print } from "./host.js";

/** `arbor admin role create` */
export async function roleCreateCommand(
  settings: Settings,
  { name, description, capability }: Omit<NewOperatorRole, "capabilities"> & { capability: readonly string[] },
): Promise<void> {
  const role = { name, description, capabilities: capability.map((one) => one.trim()) };
  await onHost(settings, async ({ store, clock }) => {
    print(await store.write((tx) => createOperatorRole(tx, role, { ids: randomIds, nowMs: clock() })));
  });
}

/** `arbor admin role list` */
export async function roleListCommand(settings: Settings, { json = false }: { json?: boolean }): Promise<void> {
  await onHost(settings, async ({ store }) => {
    const listed = await store.read(listOperatorRoles);
    for (const line of json ? listed.map(toJsonLine) : formatTable(listed)) print(escapeControls(line));
  });
}

/** `arbor admin role delete` */
export async function roleDeleteCommand(settings: Settings, uid: string): Promise<void> {
  await onHost(settings, ({ store, clock }) =>
    store.write((tx) => deleteOperatorRole(tx, uid, { ids: randomIds, nowMs: clock() })),
  );
}

function toJsonLine({ row, bindings }: OperatorRole): string {
  const { uid, name, description } = row;
  return JSON.stringify({
    ...{ uid, name, description, capabilities: capabilityNamesIn(row.capabilities) },
    createTime: new Date(row.createTimeMs).toISOString(),
    bindings: bindings.map(({ uid, identityUid, groupUid }) => ({ uid, identityUid, groupUid })),
  });
}

function formatTable(listed: readonly OperatorRole[]): string[] {
  const columns = ["UID", "NAME", "BOUND", "CAPABILITIES"].map((title) => ({ title }));
  const cells = listed.map(({ row: { uid, name, capabilities }, bindings }) => [
    uid,
    name,
    String(bindings.length),
    capabilityNamesIn(capabilities).join(","),
  ]);
  return createTable(columns, { colour: false, width: undefined }).lines(cells);
}
