import type { MethodName, RestRequest } from "./wire.js";

const GROUPS = "/iam/v2beta1/groups";

interface AnyRequest {
  readonly uid?: string;
  readonly parent?: string;
  readonly groupUid?: string;
  readonly group?: { readonly uid?: string };
  readonly updateMask?: { readonly paths: readonly string[] };
  readonly uidp?: Readonly<Record<string, unknown>>;
}

/** What to send over REST for a call, by paths written out here, not derived from the protos. */
export function restRequestOf(method: MethodName, request: object): RestRequest {
  const given = request as AnyRequest;
  switch (method) {
    case "GetGroup":
      return { method: "GET", path: at(given.uid) };
    case "DeleteGroup":
      return { method: "DELETE", path: at(given.uid) };
    case "ListGroups":
      return { method: "GET", path: `${GROUPS}${queryOf(given)}` };
    case "CreateGroup":
      return { method: "POST", path: at(given.parent), body: given.group ?? {} };
    case "UpdateGroup": {
      const { uid, ...fields } = given.group ?? {};
      const mask = given.updateMask?.paths.join(",");
      const query = mask === undefined ? "" : `?updateMask=${encodeURIComponent(mask)}`;
      return { method: "PATCH", path: at(uid) + query, body: fields };
    }
    case "RequestGroupAccess":
      return { method: "POST", path: `${at(given.groupUid)}:requestGroupAccess`, body: {} };
    case "LookupGroup":
      return { method: "GET", path: `${GROUPS}:lookupGroup` };
    case "CheckEligibility":
      return { method: "GET", path: `${GROUPS}:checkEligibility` };
    default:
      throw new TypeError(`${method} has no path`);
  }
}

function at(uid = ""): string {
  return `${GROUPS}/${uid.split("/").map(encodeURIComponent).join("/")}`;
}

function queryOf({ uidp = {}, ...plain }: AnyRequest): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(plain)) query.append(snake(name), String(value));
  for (const [name, value] of Object.entries(uidp)) {
    for (const one of Array.isArray(value) ? value : [value]) query.append(`uidp.${snake(name)}`, String(one));
  }
  return query.size === 0 ? "" : `?${query}`;
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
