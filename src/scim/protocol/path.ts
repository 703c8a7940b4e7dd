// Paths of PATCH (RFC 7644, section 3.5.2): `name.givenName`, `emails[type eq "work"].value`,
// `urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department`.
import { badRequest, quote } from "./error.js";
import { MAX_FILTER_LENGTH, parseElementFilter } from "./filter.js";
import type { Filter } from "./filter-tree.js";
import { type AttributeChain, findAttribute, formatChain, type ResourceType, resolveName } from "./schemas.js";

export interface Path {
  /** The attribute, with its sub-attribute last where the path names one. */
  readonly chain: AttributeChain;
  /** Which elements of the multi-valued attribute of the chain are meant. */
  readonly filter: Filter | undefined;
}

/** @throws ScimError 400 invalidPath, or invalidFilter for what is between brackets */
export function parsePath(text: string, type: ResourceType): Path {
  const path = findPath(text, type);
  if (path === undefined) throw badRequest("invalidPath", `there is no attribute ${quote(text)}`);
  return path;
}

/**
 * Parses a path.
 *
 * @returns undefined if the schema does not have its attribute
 * @throws ScimError 400 if the path is malformed
 */
export function findPath(text: string, type: ResourceType): Path | undefined {
  if (text.length > MAX_FILTER_LENGTH) {
    throw badRequest("invalidPath", `a path has more than ${MAX_FILTER_LENGTH} characters`);
  }
  const open = text.indexOf("[");
  if (open < 0) {
    const chain = resolveName(type, text);
    return chain && { chain, filter: undefined };
  }
  const chain = resolveName(type, text.slice(0, open));
  if (chain === undefined) return undefined;
  const attribute = chain.at(-1) ?? chain[0];
  if (!attribute.multiValued || attribute.type !== "complex") {
    throw badRequest("invalidPath", `${formatChain(chain)} takes no brackets`);
  }
  const close = text.lastIndexOf("]");
  if (close < open) throw badRequest("invalidPath", `the path ${quote(text)} lacks ]`);
  const filter = parseElementFilter(text.slice(open + 1, close), attribute);
  const rest = text.slice(close + 1);
  if (rest === "") return { chain, filter };
  const sub = rest.startsWith(".") ? findAttribute(attribute.subAttributes, rest.slice(1)) : undefined;
  return sub && { chain: [...chain, sub], filter };
}
