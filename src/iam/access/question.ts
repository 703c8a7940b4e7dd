// What a request asks about: the capabilities of a method, or those that it names.
import { type Capability, CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { isUidp } from "../../kernel/uidp.js";
import { bitOf, type Guard } from "../../pipeline/auth/authorize.js";
import type { MethodEntry, NeededCapability } from "../../pipeline/method-table.js";
import { formatCapabilityNames, isCapabilityName, parseCapabilities } from "../roles/capability-names.js";
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
  readonly method: string;
  readonly capabilities: readonly string[];
  readonly resource: string;
}

const MAX_CAPABILITIES = 16;

/**
 * Parses what a request asks.
 *
 * @throws ApiError INVALID_ARGUMENT for a method that is not served, a capability that does not exist, both or neither of
 * them, and a resource that is missing or no uid.
 */
export function parseQuestion({ method, capabilities, resource }: QuestionFields, findMethod: FindMethod): Question {
  if ((method === "") === (capabilities.length === 0)) {
    throw invalidArgument({
      field: "method",
      subject: "",
      rule: "set either {} or {}",
      args: ["method", "capabilities"],
    });
  }
  const question = method === "" ? askFor(parseNames(capabilities)) : askAbout(getMethod(method, findMethod));
  if (resource === "" && question.needsResource) throw invalidArgument({ field: "resource", rule: "is required" });
  if (resource !== "" && !isUidp(resource)) {
    throw invalidArgument({ field: "resource", rule: "must be a uid, such as the service assigns" });
  }
  return question;
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

function getMethod(name: string, findMethod: FindMethod): MethodEntry {
  const dot = name.lastIndexOf(".");
  const path = name.includes("/") ? name.replace(/^\/?/, "/") : `/${name.slice(0, dot)}/${name.slice(dot + 1)}`;
  const entry = findMethod(path);
  if (entry) return entry;
  const example = "chainguard.platform.iam.v2beta1.GroupsService.UpdateGroup";
  throw invalidArgument({ field: "method", rule: `must be a method that is served, such as ${example}` });
}

function parseNames(names: readonly string[]): NeededCapability[] {
  if (names.length > MAX_CAPABILITIES) {
    throw invalidArgument({ field: "capabilities", rule: `must be at most ${MAX_CAPABILITIES}` });
  }
  const unknown = names.findIndex((name) => !isCapabilityName(name));
  if (unknown >= 0) {
    const field = `capabilities[${unknown}]`;
    throw invalidArgument({
      field,
      subject: "capabilities",
      rule: "must be names of capabilities, such as groups.update",
    });
  }
  return parseCapabilities([...new Set(names)]).map(needed);
}

/** A capability as methods declare it. */
export function needed(capability: Capability): NeededCapability {
  const [name = CapabilitySchema.value[capability]?.name ?? ""] = formatCapabilityNames([capability]);
  return { name, bit: bitOf(capability) };
}
