// Builds the file of an organisation, in which resources are named by their paths.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { kinds } from "./kinds.js";
import { type Actual, type ActualState, pathOf } from "./model.js";

/** The resources that a file has: those that nothing else manages. */
export function listExported({ resources }: ActualState): readonly Actual[] {
  return resources.filter(({ managedBy }) => managedBy === undefined);
}

/** Names what role bindings refer to: by path, by the address of a person, by the name of a built-in role, or by uid. */
export function createNames({ resources, people, builtInRoles }: ActualState) {
  const paths = new Map(
    resources.filter(({ kind }) => kind === "identity" || kind === "role").map((one) => [one.uid, pathOf(one)]),
  );
  return {
    identity({ identityUid = "", identityText = "" }: Actual): string {
      return paths.get(identityUid) ?? (people.get(identityText)?.size === 1 ? identityText : identityUid);
    },
    role({ roleUid = "", roleText = "" }: Actual): string {
      return paths.get(roleUid) ?? (builtInRoles.get(roleText) === roleUid ? roleText : roleUid);
    },
  };
}

/** Builds the file, in an order that depends on names alone. */
export function buildFile(actual: ActualState): JsonObject {
  const names = createNames(actual);
  const file: JsonObject = { organization: actual.organization.name };
  for (const { kind, section, fields } of kinds) {
    const items = listExported(actual)
      .filter((one) => one.kind === kind)
      .map(
        (one): JsonObject => ({
          ...identify(one, names),
          ...Object.fromEntries(
            fields.flatMap(({ name }): [string, JsonValue][] => {
              const value = one.values[name];
              return value === undefined || isEmpty(value) ? [] : [[name, orderKeys(value)]];
            }),
          ),
        }),
      );
    const [only] = items;
    if (kind !== "issuer guard") file[section] = items.sort(compareItems);
    // Without issuers a guard allows none.
    else if (only !== undefined) file[section] = { issuers: [], ...only };
  }
  return file;
}

function identify(one: Actual, names: ReturnType<typeof createNames>): JsonObject {
  switch (one.kind) {
    case "issuer guard":
      return {};
    case "role binding":
      return { group: one.group, identity: names.identity(one), role: names.role(one) };
    case "subscription":
      return { group: one.group, sink: one.name };
    default:
      return { path: pathOf(one) };
  }
}

function isEmpty(value: JsonValue): boolean {
  return value === "" || value === null || (Array.isArray(value) && value.length === 0);
}

// What somebody looks for first: the claim of a condition, and the issuer of a guard.
function orderKeys(value: JsonValue): JsonValue {
  if (!Array.isArray(value)) return value;
  return value.map((one) => {
    if (typeof one !== "object" || one === null || Array.isArray(one)) return one;
    const { path, conditions, ...rest } = one;
    const own = conditions === undefined ? undefined : orderKeys(conditions);
    return { ...(path !== undefined && { path }), ...rest, ...(own !== undefined && { conditions: own }) };
  });
}

function compareItems(a: JsonObject, b: JsonObject): number {
  const key = ({ path, group, identity, role, sink }: JsonObject) =>
    JSON.stringify([path ?? group, identity, role, sink]);
  const [left, right] = [key(a), key(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
