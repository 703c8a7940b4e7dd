// Methods of the published API that the service declares and cannot implement.
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { invalidArgument, permissionDenied, unimplemented } from "../kernel/errors.js";
import { isUidp } from "../kernel/uidp.js";
import { formatCapabilities } from "./auth/authorize.js";
import type { UnaryCall } from "./call.js";
import type { Handlers } from "./handlers.js";
import { readAuthRule, readCapabilities } from "./method-table.js";

/**
 * Creates handlers that fail with UNIMPLEMENTED and a reason, for callers with the right to call the method. They
 * read no data, so the response does not show what exists.
 */
export function createUnavailableHandlers<S extends DescService, K extends keyof S["method"] & string>(
  { method }: S,
  reasons: Readonly<Record<K, string>>,
): Pick<Handlers<S>, K> {
  const handlers = Object.entries<string>(reasons).map(([name, reason]) => [
    name,
    createUnavailableHandler(method[name], reason),
  ]);
  return Object.fromEntries(handlers) as Pick<Handlers<S>, K>;
}

function createUnavailableHandler(method: DescMethod | undefined, reason: string) {
  if (method === undefined) throw new TypeError(`there is no such method: ${reason}`);
  const rule = readAuthRule(method);
  const needed = formatCapabilities(readCapabilities(method));
  const unscoped = rule.mode === "guarded" && rule.scope === undefined;
  return async (request: Message, call: UnaryCall): Promise<never> => {
    if (unscoped) await requireRights(request, call, needed);
    throw unimplemented(`${method.parent.name}.${method.name}: ${reason}`);
  };
}

// The pipeline leaves the rights of methods without a scope to their handlers.
async function requireRights(
  request: Message & { readonly repoId?: string },
  call: UnaryCall,
  needed: string,
): Promise<void> {
  const { repoId = "" } = request;
  if (repoId === "") {
    if (call.caller.visibleGroups().length === 0) throw permissionDenied(`${needed} at any group`);
    return;
  }
  if (!isUidp(repoId)) {
    throw invalidArgument({ field: "repoId", rule: "must be an id, such as the service assigns" });
  }
  if (!(await call.callerAt(repoId)).holdsNeeded(repoId)) throw permissionDenied(`${needed} at ${repoId}`);
}
