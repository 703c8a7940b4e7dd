// Replaces the names in requests by uids.
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { isUidText } from "../../../kernel/uidp.js";
import type { MethodCall } from "../method-call.js";
import { findKinds, type UidKind } from "./fields.js";
import type { Reach } from "./lookup.js";

/** Resolves names in requests. */
export interface NameResolver {
  /** Replaces names by uids in all fields of a request that hold uids. */
  resolve(method: DescMethod, request: Message): Promise<void>;
  /** Returns the uid of a resource of one of these kinds, and a uid as it is. */
  find(kinds: readonly UidKind[], text: string): Promise<string>;
}

/**
 * Creates a resolver, which asks the service only when it is given a name, and once for each.
 *
 * @param call calls a method without resolving names
 */
export function createNameResolver(call: MethodCall): NameResolver {
  const found = new Map<string, Promise<string>>();
  let reach: Promise<Reach> | undefined;
  const lookUp = async (kinds: readonly UidKind[], text: string): Promise<string> => {
    // Most commands are given uids, and load nothing for names.
    const { findOne, readReach } = await import("./lookup.js");
    reach ??= readReach(call);
    return findOne({ call, reach: await reach }, kinds, text);
  };
  const find: NameResolver["find"] = async (kinds, text) => {
    if (isNoName(text)) return text;
    const key = `${kinds.join()} ${text}`;
    const uid = found.get(key) ?? lookUp(kinds, text);
    found.set(key, uid);
    return uid;
  };
  return {
    find,
    resolve: (method, request) => resolveFields(reflect(method.input, request), method, find),
  };
}

// A single `/` is the parent of all root groups.
function isNoName(text: string): boolean {
  return text === "" || text === "/" || isUidText(text);
}

async function resolveFields(message: ReflectMessage, method: DescMethod, find: NameResolver["find"]): Promise<void> {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const kinds = findKinds(method, field) ?? [];
    const resolveText = async (value: unknown) => (typeof value === "string" ? find(kinds, value) : value);
    if (field.fieldKind === "message") {
      await resolveFields(message.get(field), method, find);
    } else if (field.fieldKind === "list") {
      const list = message.get(field);
      for (const [i, value] of [...list].entries()) {
        if (field.listKind === "message") await resolveFields(value as ReflectMessage, method, find);
        else if (kinds.length > 0) list.set(i, (await resolveText(value)) as string);
      }
    } else if (field.fieldKind === "map") {
      const map = message.get(field);
      for (const [key, value] of [...map]) {
        if (field.mapKind === "message") await resolveFields(value as ReflectMessage, method, find);
        else if (kinds.length > 0) map.set(key, (await resolveText(value)) as string);
      }
    } else if (kinds.length > 0) {
      message.set(field, (await resolveText(message.get(field))) as string);
    }
  }
}
