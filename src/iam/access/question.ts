// What a request asks about: the capabilities of a method, or those that it names.
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import type { Guard } from "../../pipeline/auth/authorize.js";
import { getCapability, type MethodEntry, type NeededCapability } from "../../pipeline/method-table.js";
import { isCapabilityName, parseCapabilities } from "../roles/capability-names.js";
import { findMethodRule } from "./method-rules.js";

/** Finds a served method by its RPC path; undefined where there is none. */
export type FindMethod = (path: string) => MethodEntry | undefined;

/** What is asked: who may do this? */
export interface Question extends Pick<Guard, "ownIdentity"> {
  readonly capabilities: readonly NeededCapability[];
  /** Whether the capabilities are needed at a resource, or the method can be called without one. */
  readonly needsResource: boolean;
  /** What the method itself requires of its caller, in words. */
  readonly methodRule: string;
}

/** The fields of requests that say what is asked. */
interface QuestionFields {
  readonly actions: readonly string[];
  readonly resource: string;
}

const MAX_ACTIONS = 16;

/**
 * Parses what a request asks.
 *
 * @throws ApiError INVALID_ARGUMENT for actions that are neither one method that is served nor capabilities that exist, and
 * for a resource that is missing or no uid.
 */
export function parseQuestion({ actions, resource }: QuestionFields, findMethod: FindMethod): Question {
  const question = parseActions(actions, findMethod);
  if (resource === "" && question.needsResource) {
    throw invalidArgument({ field: "resource", rule: "is required unless the method needs its capabilities nowhere" });
  }
  if (resource !== "" && !isUidp(resource)) {
    throw invalidArgument({ field: "resource", rule: "must be a uid, such as the service assigns" });
  }
  return question;
}

function parseActions(actions: readonly string[], findMethod: FindMethod): Question {
  const [first = ""] = actions;
  if (first === "") throw invalidArgument({ field: "actions", rule: "is required" });
  if (actions.length > MAX_ACTIONS) throw invalidArgument({ field: "actions", rule: `must be at most ${MAX_ACTIONS}` });
  const unknown = actions.find((name) => !isCapabilityName(name));
  if (unknown === undefined)
    return askFor(parseCapabilities([...new Set(actions)]).map((one) => getCapability(one, "actions")));
  const entry = actions.length === 1 ? findMethod(pathOf(first)) : undefined;
  if (entry) return askAbout(entry);
  const examples =
    "chainguard.platform.iam.v2beta1.GroupsService.UpdateGroup, or names of capabilities, such as groups.update";
  throw invalidArgument({ field: "actions", rule: `must be one method that is served, such as ${examples}` });
}

// Methods are written with a point or with a slash before their name.
function pathOf(name: string): string {
  const dot = name.lastIndexOf(".");
  return name.includes("/") ? name.replace(/^\/?/, "/") : `/${name.slice(0, dot)}/${name.slice(dot + 1)}`;
}

function askFor(capabilities: readonly NeededCapability[]): Question {
  return { capabilities, needsResource: true, methodRule: "" };
}

function askAbout({ auth, desc, ...entry }: MethodEntry): Question {
  const methodRule = findMethodRule(desc);
  if (auth.mode === "public") return { capabilities: [], needsResource: false, methodRule };
  if (auth.mode === "self") {
    return {
      capabilities: [],
      needsResource: false,
      methodRule: "the caller proves who it is with another credential",
    };
  }
  const { capabilities, scope, ownIdentity } = auth;
  const isRead = entry.kind !== "unary" || entry.access === "read";
  const names = capabilities.map(({ name }) => `\`${name}\``).join(" and ");
  const shown =
    isRead && scope === undefined && names !== "" ? `it shows what is in groups where the caller has ${names}` : "";
  return {
    capabilities,
    needsResource: scope !== undefined,
    methodRule: methodRule || shown,
    ...(ownIdentity && { ownIdentity }),
  };
}
