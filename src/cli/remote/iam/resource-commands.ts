// What the commands of a resource are: methods, and the columns of lists. Those of a kind follow from its row (kinds.ts) and the
// descriptors of its service. Flags, requests and responses follow from the descriptors.
import type { DescField, DescMessage, DescMethodUnary, DescService, JsonObject } from "@bufbuild/protobuf";
import type { ListColumn } from "../../output/format.js";
import { getKind, type KeyField, type Kind } from "../kinds.js";

export type Verb = "list" | "get" | "create" | "update" | "delete";

/** The commands of one kind of resource. */
export interface ResourceCommand {
  /** The name on the command line. */
  readonly name: string;
  /** The words for one resource, such as `role binding`. */
  readonly singular: string;
  readonly methods: Readonly<Partial<Record<Verb, DescMethodUnary>>>;
  /** The methods that are none of the verbs. */
  readonly actions?: readonly ActionCommand[];
  /** The verb that creates one, if it is not `create`. */
  readonly createAlias?: string;
  /** The columns of a list; none without one. */
  readonly columns?: readonly ListColumn[];
  /** A note after a creation, in full sentences. */
  readonly creationNote?: string;
  /** A note before a deletion, in full sentences. */
  readonly deletionNote?: string;
  /** Whether `create` says which others in the group have the name already. */
  readonly warnsOfNamesakes?: true;
  /** Whether tables show the redirect URI, which is no field. */
  readonly hasRedirectUri?: true;
  /** Whether `create` has the flags of presets. */
  readonly hasPresets?: true;
  /** Whether `create` has `--expires`, and tables show when each ends. */
  readonly mayEnd?: true;
  /** Whether `delete` has `--recursive`. */
  readonly isTree?: true;
  /** Whether `create` has `--if-absent`, and how it finds one that exists: by its key, or else by its name. */
  readonly isNamed?: boolean;
  readonly key?: readonly KeyField[];
  readonly counts?: (row: JsonObject) => boolean;
}

/** The command of a method that is none of the verbs. */
export interface ActionCommand {
  /** The name on the command line. */
  readonly name: string;
  readonly method: DescMethodUnary;
  readonly description: string;
  /** The names of the fields that are arguments: the required ones that have one value, unless given. */
  readonly args?: readonly string[];
  /** The name of the field with a resource, whose fields have flags without a prefix, and which `--file` sets. */
  readonly resource?: string;
  /** The columns of the list that the response has. */
  readonly columns?: readonly ListColumn[];
  /** Whether it asks for a confirmation, because it cannot be undone. */
  readonly destructive?: true;
  /** The method that gets what the uid in its arguments is of, whose name the question shows. */
  readonly describe?: DescMethodUnary;
}

/** Loads the commands of a kind: its service, and what its row says. */
export async function loadCommands(kind: Kind): Promise<ResourceCommand> {
  const row = getKind(kind);
  const { command, load, actions = [] } = row;
  const service = await load();
  const list = getListMethod(service);
  const noun = getRowsField(list).message.name;
  const verbs = (["get", "create", "update", "delete"] as const).flatMap((verb) => {
    const method = service.method[`${verb}${noun}`];
    return method === undefined ? [] : [[verb, method] as const];
  });
  return {
    ...row,
    name: command.slice(command.lastIndexOf(" ") + 1),
    singular: kind,
    methods: { list, ...Object.fromEntries(verbs) },
    actions: await Promise.all(
      actions.map(async ({ method, describe, ...action }) => ({
        ...action,
        method: getMethod(service, method),
        ...(describe !== undefined && { describe: await loadGetMethod(describe) }),
      })),
    ),
  };
}

/** Gets the method of a service that lists resources of a kind. */
export function getListMethod({ methods, typeName }: DescService): DescMethodUnary {
  const method = methods.find(({ localName }) => localName.startsWith("list"));
  if (method === undefined) throw new TypeError(`${typeName} lists nothing`);
  return method as DescMethodUnary;
}

async function loadGetMethod(kind: string): Promise<DescMethodUnary> {
  const service = await getKind(kind).load();
  return getMethod(service, `get${getRowsField(getListMethod(service)).message.name}`);
}

function getMethod({ method: methods, typeName }: DescService, name: string): DescMethodUnary {
  const method = methods[name];
  if (method === undefined) throw new TypeError(`${typeName} has no method ${name}`);
  return method as DescMethodUnary;
}

/** Gets the field of a list's response with its rows. */
export function getRowsField(method: DescMethodUnary): DescField & { readonly message: DescMessage } {
  const field = method.output.fields.find(({ fieldKind, message }) => fieldKind === "list" && message);
  if (field?.message === undefined) throw new TypeError(`${method} has no list in its response`);
  return field as DescField & { readonly message: DescMessage };
}

/** Finds the field of a request with the resource; undefined when the request has the fields itself. */
export function findResourceField({ methods }: ResourceCommand, { input }: DescMethodUnary): DescField | undefined {
  const { list, get } = methods;
  const resource = list === undefined ? get?.output : getRowsField(list).message;
  return input.fields.find(({ fieldKind, message }) => fieldKind === "message" && message === resource);
}
