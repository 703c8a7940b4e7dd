// A group with a person and a workload in it, and people who have joined the organisation.
import { builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

type Caller = Awaited<ReturnType<CliWorld["service"]["identity"]>>;

/** The world of the commands about rights. */
export interface AccessWorld extends CliWorld {
  /** `acme.example/team`. */
  readonly team: string;
  /** `acme.example/team/ci`, which may view the group. */
  readonly ci: Caller;
  /** `ada@acme.example`, who has joined the organisation and may edit the group. */
  readonly ada: Caller;
  /** Binds a person who has accepted it, so that the organisation sees name and address. */
  join(identity: string, role: string, group: string): Promise<string>;
}

/** Starts it. */
export async function startAccessWorld(): Promise<AccessWorld> {
  const world = await startCliWorld();
  const { service, root } = world;
  const team = String((await world.json("groups", "create", "--parent", root, "--name", "team")).uid);
  const join: AccessWorld["join"] = async (identityUid, role, groupUid) => {
    const uid = randomIds.newUid(groupUid);
    const nowMs = Date.now();
    const row = { uid, groupUid, identityUid, roleUid: builtinRoleUid(role), createTimeMs: nowMs, updateTimeMs: nowMs };
    await service.app.installation.store.write((tx) =>
      tx
        .table(roleBindingKind)
        .insert({ ...row, automatic: false, accepted: true, managedByUid: null, endTimeMs: null, pending: false }),
    );
    return uid;
  };
  const ci = await service.identity({ name: "ci" }, team);
  await service.bind(ci.uid, "viewer", team);
  const ada = await service.identity({ name: "Ada", email: "ada@acme.example" });
  await join(ada.uid, "editor", team);
  return { ...world, team, ci, ada, join };
}
