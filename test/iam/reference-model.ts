// What an authorization decision should be, in the plainest terms: sets of
// groups, bindings, roles and identities, and one rule.

/** The world of the model; the test changes it along with the store. */
export interface Model {
  readonly identities: Set<string>;
  /** The parent of every group; a root has none. */
  readonly groups: Map<string, string | undefined>;
  /** The capabilities of every role. */
  readonly roles: Map<string, ReadonlySet<number>>;
  readonly bindings: Map<string, { readonly identity: string; readonly role: string; readonly group: string }>;
  /** Whether a binding holds below its group; false makes a model that is wrong. */
  readonly inherits: boolean;
}

/** An empty world. */
export function emptyModel(inherits = true): Model {
  return { identities: new Set(), groups: new Map(), roles: new Map(), bindings: new Map(), inherits };
}

function holdsOne(model: Model, identity: string, capability: number, group: string): boolean {
  for (const binding of model.bindings.values()) {
    if (binding.identity !== identity || !model.roles.get(binding.role)?.has(capability)) continue;
    let at: string | undefined = group;
    while (at !== undefined) {
      if (at === binding.group) return true;
      at = model.inherits ? model.groups.get(at) : undefined;
    }
  }
  return false;
}

/** Whether `identity` may do, at `group`, what needs all of `capabilities`: a binding holds there and below. */
export function allows(model: Model, identity: string, capabilities: readonly number[], group: string): boolean {
  return model.identities.has(identity) && capabilities.every((one) => holdsOne(model, identity, one, group));
}

/** The groups that such an identity sees in lists. */
export function visible(model: Model, identity: string, capabilities: readonly number[]): string[] {
  return [...model.groups.keys()].filter((group) => allows(model, identity, capabilities, group)).sort();
}
