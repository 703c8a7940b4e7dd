// Makes the changes of a plan, so that the same plan can be made again after an interruption at any call.
import type { JsonObject } from "@bufbuild/protobuf";
import { parentOf } from "../../../kernel/uidp.js";
import { Code, CommandError } from "../../errors.js";
import type { MethodCall } from "../method-call.js";
import { readRows } from "../method-call.js";
import { type Call, getKindRow } from "./kinds.js";
import {
  type Actual,
  type ActualState,
  type Change,
  type Desired,
  type FieldChange,
  type Plan,
  pathOf,
  ROOT,
} from "./model.js";
import { findDifferences } from "./plan.js";

/** What a call may fail with although the service has done or will do what it says. */
const unknownOutcomes: readonly number[] = [Code.Unavailable, Code.DeadlineExceeded, Code.Unknown, Code.Internal];

/**
 * Makes the changes of a plan in their order. A deletion that the service refuses, such as of a role that an invite grants, does
 * not keep the others from being made.
 *
 * @param onDone is told of each change that is made
 * @throws CommandError the first error of the service that ends the run, or all refused deletions, each with the change that
 * it is about
 */
export async function runPlan(
  call: MethodCall,
  { changes }: Plan,
  actual: ActualState,
  onDone: (change: Change) => Promise<void>,
): Promise<void> {
  const runner = new Runner(call, actual);
  const refused: CommandError[] = [];
  for (const change of changes) {
    try {
      await runner.make(change);
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      const text = `cannot ${change.action} ${change.kind} ${change.label}: ${error.message}`;
      const failure = new CommandError(error.code, text, error);
      if (change.action !== "delete" || error.code !== Code.FailedPrecondition) throw failure;
      refused.push(failure);
      continue;
    }
    await onDone(change);
  }
  const [first] = refused;
  if (first !== undefined) throw new CommandError(first.code, refused.map(({ message }) => message).join("\n"), first);
}

class Runner {
  readonly #call: MethodCall;
  readonly #actual: ActualState;
  /** The uids of groups, identities and roles by their kinds and paths. */
  readonly #uids = new Map<string, string>();

  constructor(call: MethodCall, actual: ActualState) {
    this.#call = call;
    this.#actual = actual;
    for (const one of actual.resources) this.#note(one, one.uid);
  }

  async make(change: Change): Promise<void> {
    switch (change.action) {
      case "create":
        return this.#create(change.desired);
      case "update":
        return this.#update(change.actual, change.desired, change.fields);
      case "delete":
        return this.#delete(change.actual);
    }
  }

  // The plan may be older than what another has created since, so what may exist twice is looked for once more. A call whose
  // outcome is unknown may have created it as well.
  async #create(desired: Desired): Promise<void> {
    const row = getKindRow(desired.kind);
    const group = this.#uidOf("group", desired.group);
    const existing = await this.#find(desired, group);
    if (existing !== undefined) return this.#adopt(desired, existing);
    const uids = { group, identity: this.#refer("identity", desired), role: this.#refer("role", desired) };
    try {
      const response = await this.#send(row.create(desired.name, desired.values, uids));
      const created = (response.identity as JsonObject | undefined)?.uid ?? response.uid;
      if (desired.kind !== "issuer guard" && desired.kind !== "role binding") this.#note(desired, String(created));
    } catch (error) {
      if (!(error instanceof CommandError) || !unknownOutcomes.includes(error.code)) throw error;
      const created = await this.#find(desired, group);
      if (created === undefined) throw error;
      await this.#adopt(desired, created);
    }
  }

  /** Finds the resource that has the name of another already. */
  async #find(desired: Desired, group: string): Promise<Actual | undefined> {
    const { find, parse } = getKindRow(desired.kind);
    if (find === undefined) return undefined;
    const { method, request } = find(group, desired.name);
    const found: Actual[] = [];
    for await (const row of readRows(this.#call, method, request)) {
      const fields = parse(row);
      const uid = String(row.uid);
      // Built-in roles lie in no group.
      if (fields.name !== desired.name || parentOf(uid) !== group) continue;
      found.push({ kind: desired.kind, uid, group: desired.group, ...fields });
    }
    if (found.length < 2) return found[0];
    const uids = found.map(({ uid }) => uid).join(" and ");
    throw new CommandError(Code.AlreadyExists, `others have created several of this name, with the uids ${uids}`);
  }

  /** Takes what exists for what was to be created, and changes what differs. */
  async #adopt(desired: Desired, existing: Actual): Promise<void> {
    this.#note(desired, existing.uid);
    const fields = findDifferences(desired, existing);
    if (fields.length > 0) await this.#update(existing, desired, fields);
  }

  async #update(actual: Actual, { kind, values }: Desired, fields: readonly FieldChange[]): Promise<void> {
    for (const call of getKindRow(kind).update(actual, values, fields)) await this.#send(call);
  }

  async #delete({ kind, uid }: Actual): Promise<void> {
    try {
      await this.#send(getKindRow(kind).remove(uid));
    } catch (error) {
      // It may have been deleted by an earlier run whose answer was lost.
      if (!(error instanceof CommandError) || error.code !== Code.NotFound) throw error;
    }
  }

  #send({ method, request }: Call): Promise<JsonObject> {
    return this.#call(method, request);
  }

  #refer(kind: "identity" | "role", desired: Desired): string {
    const text = desired[kind]?.text ?? "";
    if (text.startsWith("/")) return this.#uidOf(kind, text);
    const named = kind === "role" ? this.#actual.builtInRoles.get(text) : [...(this.#actual.people.get(text) ?? [])][0];
    return named ?? text;
  }

  #uidOf(kind: "group" | "identity" | "role", path: string): string {
    const uid = path === ROOT ? this.#actual.organization.uid : this.#uids.get(`${kind} ${path}`);
    if (uid === undefined) throw new TypeError(`the plan has no ${kind} ${path}`);
    return uid;
  }

  #note(one: Pick<Desired, "kind" | "group" | "name">, uid: string): void {
    if (["group", "identity", "role"].includes(one.kind)) this.#uids.set(`${one.kind} ${pathOf(one)}`, uid);
  }
}
