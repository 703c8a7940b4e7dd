// What a client asks a registry token to be good for (distribution, "Docker
// Registry Token Scope and Access").
import { invalidArgument } from "../../kernel/errors.js";
import { parseRepoPath, type RepoPath } from "./repo-path.js";

/** What can be done with a repo. */
export type RepoAction = "pull" | "push" | "delete";

/** A repo and what is asked to be done with it. */
export interface RequestedScope {
  /** The repo's name, as asked. */
  readonly name: string;
  readonly path: RepoPath;
  /** Each once, in this order: pull, push, delete. */
  readonly actions: readonly RepoAction[];
}

const ACTIONS: readonly RepoAction[] = ["pull", "push", "delete"];

/** How many scopes one token may be asked for. */
const MAX_SCOPES = 16;

/**
 * Reads scopes, each `repository:<name>:<actions>`. Other types, which the registry guards nothing of
 * ours with, names that no repo can have and actions that do not exist ask for nothing. `*` stands for
 * every action; it is what some clients delete with.
 *
 * @param values of the parameter `scope`, each a list with blanks between
 * @throws ApiError INVALID_ARGUMENT for more than 16 scopes.
 */
export function parseScopes(values: readonly string[]): readonly RequestedScope[] {
  const scopes = values.flatMap((value) => value.split(" ")).filter(Boolean);
  if (scopes.length > MAX_SCOPES) {
    throw invalidArgument({ field: "scope", description: `scope must name at most ${MAX_SCOPES} scopes` });
  }
  const asked = new Map<string, Set<string>>();
  for (const scope of scopes) {
    const [type, name, actions, ...more] = scope.split(":");
    if (type !== "repository" || name === undefined || actions === undefined || more.length > 0) continue;
    const known = asked.get(name) ?? new Set();
    for (const action of actions.split(",")) known.add(action);
    asked.set(name, known);
  }
  return [...asked].flatMap(([name, given]) => {
    const path = parseRepoPath(name);
    const actions = given.has("*") ? ACTIONS : ACTIONS.filter((action) => given.has(action));
    return path === undefined || actions.length === 0 ? [] : [{ name, path, actions }];
  });
}
