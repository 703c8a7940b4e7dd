// The names of people in lists of role bindings. The API has them in the binding by which a person has joined the organisation,
// by an invite, by its provider or by creating it, and not in those that somebody made for the same person later.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  ListRoleBindingsRequestSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { rootOf } from "../../../kernel/uidp.js";
import { CommandError } from "../../errors.js";
import { type MethodCall, readRowsOf } from "../method-call.js";

/** How many bindings of the organisation the one further call reads. */
const PAGE_SIZE = 200;

/**
 * Creates what adds names and addresses to rows that lack them: from other rows, and at most once from a page of the bindings of
 * the organisation. Only what the caller may list is added, and never what a person has in another organisation.
 */
export function createNameFinder(call: MethodCall): (rows: readonly JsonObject[]) => Promise<readonly JsonObject[]> {
  const known = new Map<string, JsonObject>();
  let hasAsked = false;
  const learn = (rows: readonly JsonObject[]) => {
    for (const row of rows) if (hasName(row)) known.set(keyOf(row), row.identity as JsonObject);
  };
  const isUnknown = (row: JsonObject) => isNameless(row) && !known.has(keyOf(row));
  return async (rows) => {
    learn(rows);
    const unknown = rows.find(isUnknown);
    if (unknown !== undefined && !hasAsked) {
      hasAsked = true;
      const request = create(ListRoleBindingsRequestSchema, {
        uidp: { descendantsOf: rootOf(String(unknown.uid)) },
        pageSize: PAGE_SIZE,
      });
      const response = await call(RoleBindingsService.method.listRoleBindings, request).catch((error: unknown) => {
        // The list itself has been read, and is printed without names.
        if (error instanceof CommandError) return {};
        throw error;
      });
      learn(readRowsOf(response));
    }
    return rows.map((row) => {
      const identity = isNameless(row) ? known.get(keyOf(row)) : undefined;
      return identity === undefined ? row : { ...row, identity };
    });
  };
}

// The organisation and the person.
function keyOf({ uid, identity }: JsonObject): string {
  return `${rootOf(String(uid))} ${String((identity as JsonObject).uid)}`;
}

function hasName({ identity }: JsonObject): boolean {
  return isJsonObject(identity) && typeof identity.name === "string" && identity.name !== "";
}

/** Whether the identity of a row is a person, whose name the row does not have. */
function isNameless(row: JsonObject): boolean {
  const { identity } = row;
  return isJsonObject(identity) && !hasName(row) && !String(identity.uid).includes("/");
}
