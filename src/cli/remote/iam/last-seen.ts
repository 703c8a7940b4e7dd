// When an identity was last seen, as tables show it.
import type { JsonObject } from "@bufbuild/protobuf";

/**
 * Finds when an identity was last seen; empty if it never was. The API then has the time of its creation. People are
 * created by their first login, so that they were seen at that time.
 */
export function findLastSeen({ uid, createTime, lastSeenTime }: JsonObject): string {
  const isWorkload = String(uid).includes("/");
  return typeof lastSeenTime === "string" && !(isWorkload && lastSeenTime === createTime) ? lastSeenTime : "";
}

/** Leaves the time out of an identity that was never seen, for tables. JSON and YAML are those of the API. */
export function omitUnseen(resource: JsonObject): JsonObject {
  if (!("lastSeenTime" in resource) || findLastSeen(resource) !== "") return resource;
  const { lastSeenTime: _unseen, ...rest } = resource;
  return rest;
}
