// Which methods create what quotas limit, as the definitions of the kinds say it. Only these methods are
// checked: events of a registry and commands on the host are recorded regardless, and their rows count.
// Logins that create people or role bindings check by themselves (src/iam/people/join-quota.ts).
import type { DescMessage, DescMethod, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable, Tx } from "../../store/port.js";
import type { Caller } from "../auth/caller.js";
import { authRuleOf, type RoomCheck } from "../method-table.js";
import type { Addition, Quotas } from "../quotas.js";
import type { CreatingMethod, RequestedAddition, ResourceDefinition } from "./define.js";

/** Declares a method that creates resources. */
export function creates<I extends DescMessage>(
  method: DescMethodUnary<I>,
  addition: (request: MessageShape<I>, caller: Caller, tx: Tx) => Awaitable<RequestedAddition | undefined>,
): CreatingMethod {
  return { method, addition: addition as CreatingMethod["addition"] };
}

/**
 * Declares a method whose scope is the parent of the new resource.
 *
 * @param count how many a request creates; one unless given
 * @throws TypeError when the method declares no scope.
 */
export function createsInScope<I extends DescMessage>(
  method: DescMethodUnary<I>,
  count: (request: MessageShape<I>) => Pick<Addition, "most" | "exact"> = () => ({}),
): CreatingMethod {
  const auth = authRuleOf(method);
  const scope = auth.mode === "guarded" ? auth.scope : undefined;
  if (scope === undefined) throw new TypeError(`${method} has no scope`);
  return creates(method, (request) => ({ ownerUid: rootOf(scope.of(request)), ...count(request) }));
}

/**
 * Builds the checks that run before a creating method.
 *
 * @returns for each method its check; undefined for a method that creates nothing a quota limits
 */
export function buildRoomChecks(
  definitions: readonly ResourceDefinition[],
  quotas: Quotas,
): (method: DescMethod) => RoomCheck | undefined {
  const checks = new Map<string, RoomCheck>();
  for (const { quota } of definitions) {
    for (const { method, addition } of quota?.createdBy ?? []) {
      checks.set(betaName(method), async (request, caller, tx) => {
        const added = await addition(request, caller, tx);
        if (quota !== undefined && added !== undefined) await quotas.requireRoom(tx, { kind: quota.name, ...added });
      });
    }
  }
  return (method) => checks.get(betaName(method));
}

function betaName({ parent, name }: DescMethod): string {
  return `${parent.typeName.replace(".v2.", ".v2beta1.")}.${name}`;
}
