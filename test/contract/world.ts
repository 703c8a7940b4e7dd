// The organisations that the protocol matrix runs against. Requests and
// expectations speak of them by placeholders such as `<shelf>`, so that both
// can be written down as data.
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import type { GroupRow } from "../../src/store/tables/groups.js";
import { type Harness, startHarness } from "../support/harness.js";
import { bindingRow, groupRow, identityRow, roleRow } from "../support/rows.js";

/** Who calls. */
export type CallerName =
  | "owner"
  | "viewer"
  | "nobody"
  | "member"
  | "requester"
  | "newcomer"
  | "gmail"
  | "stranger"
  | "workload"
  | "anonymous"
  | "garbled"
  | "expired"
  | "deleted";

/** The service with all that the matrix needs in it. */
export interface World {
  readonly url: string;
  /** Makes `<fresh>`, a new group below `<yard>`, and the newcomer anew for a call that speaks of them. */
  renew(call: { readonly as?: CallerName; readonly request: object }): Promise<void>;
  tokenOf(caller: CallerName): string | undefined;
  /** `value` with uids for placeholders. */
  fill<T>(value: T): T;
  /** `value` with placeholders for uids, times and tokens. */
  mask(value: object): unknown;
  stop(): Promise<void>;
}

const MINUTE_MS = 60_000;

/** Starts the service and fills it. */
export async function startWorld(): Promise<World> {
  const harness = await startHarness();
  const { store } = harness.app.installation;
  const uids = new Map<string, string>();
  const tokens = new Map<CallerName, string>();

  const add = async (name: string, parent: string, values: Partial<GroupRow>): Promise<string> => {
    const uid = randomIds.newUid(parent);
    await store.write((tx) => tx.groups.insert(groupRow(uid, values)));
    uids.set(name, uid);
    return uid;
  };
  const person = async (name: CallerName, email = "", group?: string): Promise<string> => {
    const { uid, token } = await harness.identity({ email }, group);
    tokens.set(name, token);
    return uid;
  };

  const ours = await harness.organisation("acme.example");
  const foreign = await harness.organisation("other.example");
  const org = ours.group;
  uids.set("org", org).set("foreign", foreign.group);
  uids.set("random", randomIds.newUid()).set("ghost", randomIds.newUid(org));
  tokens.set("owner", ours.token);
  await add("secret", foreign.group, { name: "secret" });
  const shelf = await add("shelf", org, { name: "shelf", createTimeMs: 500, updateTimeMs: 500 });
  await add("atlas", shelf, { name: "atlas", description: "first of all", createTimeMs: 1_000, updateTimeMs: 9_000 });
  const birch = await add("birch", shelf, { name: "birch", createTimeMs: 3_000, updateTimeMs: 3_000 });
  await add("cedar", shelf, { name: "cedar", createTimeMs: 2_000, updateTimeMs: 2_000 });
  await add("twig", birch, { name: "atlas", createTimeMs: 4_000, updateTimeMs: 4_000 });
  const yard = await add("yard", org, { name: "yard" });
  const staffed = await add("staffed", org, { name: "staffed" });
  const roled = await add("roled", org, { name: "roled" });
  const bound = await add("bound", org, { name: "bound" });
  uids.set("deep", await nest(harness, org, 60));

  const viewer = await person("viewer");
  await harness.bind(viewer, "viewer", shelf);
  for (const name of ["nobody", "deleted"] as const) await person(name);
  await person("gmail", "ann@gmail.com");
  await person("stranger", "bob@other.example");
  await person("member", "ann@acme.example");
  await person("workload", "ann@acme.example", staffed);
  const requester = await person("requester", "cat@Acme.Example");
  const gone = await harness.identity();
  const holder = await harness.identity();
  tokens.set("deleted", gone.token).set("garbled", "no.such.token");
  harness.skewMs = -120 * MINUTE_MS;
  tokens.set("expired", await harness.token(ours.identity));
  harness.skewMs = 0;
  const context = { ids: randomIds, nowMs: Date.now() };
  await store.write(async (tx) => {
    await tx.identities.delete(gone.uid);
    await tx.roles.insert(roleRow(randomIds.newUid(roled), { groupUid: roled }));
    await tx.roleBindings.insert(bindingRow(randomIds.newUid(bound), holder.uid, builtinRoleUid("viewer")));
    await tx.identities.insert(identityRow(randomIds.newUid(staffed)));
    await tx.accessRequests.put(org, requester, context.nowMs);
    await verifyGroup(tx, org, "ORG_KIND_CUSTOMER", context);
  });
  const listed = await fetch(`${harness.url}/iam/v2beta1/groups?uidp.children_of=${shelf}&order_by=name&page_size=2`, {
    headers: { authorization: `Bearer ${ours.token}` },
  });
  uids.set("page", ((await listed.json()) as { nextPageToken: string }).nextPageToken);

  return {
    url: harness.url,
    async renew({ as, request }) {
      if (as === "newcomer") await person("newcomer", "dan@acme.example");
      if (!JSON.stringify(request).includes("<fresh>")) return;
      await add("fresh", yard, { name: "before", description: "as it was" });
    },
    tokenOf: (caller) => tokens.get(caller),
    fill: (value) => JSON.parse(JSON.stringify(value).replace(/<(\w+)>/g, (whole, name) => uids.get(name) ?? whole)),
    mask: (value) => maskUids(value, uids),
    stop: () => harness.stop(),
  };
}

// A chain of groups; returns the uid of the last, which lies `depth` segments deep.
async function nest({ app }: Harness, root: string, depth: number): Promise<string> {
  let uid = root;
  await app.installation.store.write(async (tx) => {
    for (let i = 1; i < depth; i++) {
      uid = randomIds.newUid(uid);
      await tx.groups.insert(groupRow(uid));
    }
  });
  return uid;
}

function maskUids(value: object, uids: ReadonlyMap<string, string>): unknown {
  const names = new Map([...uids].map(([name, uid]) => [uid, `<${name}>`]));
  const nameOf = (uid: string): string => {
    const parent = parentOf(uid);
    return names.get(uid) ?? (parent === undefined ? "<new>" : `${nameOf(parent)}/<new>`);
  };
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{40}(?:\/[0-9a-f]{16})*/g, nameOf)
    .replace(/"(createTime|updateTime)":"[0-9T:.-]+Z"/g, '"$1":"<time>"')
    .replace(/"retryDelay":"[0-9.]+s"/g, '"retryDelay":"<delay>"')
    .replace(/"nextPageToken":"[\w-]+"/g, '"nextPageToken":"<token>"');
  return JSON.parse(text);
}
