// The resources below a command. The descriptors of one are loaded when its command is named.
import type { Command } from "commander";
import { addLazyCommand, type FillCommand } from "../../lazy-command.js";
import { formatPlural, getKind, type Kind } from "../kinds.js";
import { loadCommands, type ResourceCommand } from "./resource-commands.js";

export interface ResourceRow {
  /** The name on the command line. */
  readonly name: string;
  /** What the list of commands says of it, where the words for one do not say enough. */
  readonly about?: string;
  /** What people type for it as well. */
  readonly aliases?: readonly string[];
  /** The words for one resource, such as `role binding`. */
  readonly singular: string;
  readonly load: () => Promise<Omit<ResourceCommand, "name" | "singular">>;
  /** Loads what adds the commands beside those of the methods. */
  readonly loadMore?: () => Promise<FillCommand>;
}

/** Creates the row of a kind, whose commands follow from its own row (kinds.ts). */
export function kindRow(
  kind: Kind,
  {
    loadMore,
    change,
  }: Pick<ResourceRow, "loadMore"> & { readonly change?: () => Promise<Partial<ResourceCommand>> } = {},
): ResourceRow {
  const { command } = getKind(kind);
  return {
    name: command.slice(command.lastIndexOf(" ") + 1),
    singular: kind,
    load: async () => ({ ...(await loadCommands(kind)), ...(await change?.()) }),
    ...(loadMore && { loadMore }),
  };
}

/** Loads the commands of a resource. */
export async function loadResource({ name, singular, load }: ResourceRow): Promise<ResourceCommand> {
  return { ...(await load()), name, singular };
}

/** Adds a command for each resource. */
export function addResources(parent: Command, rows: readonly ResourceRow[]): void {
  for (const row of rows) {
    addLazyCommand(parent, {
      name: row.name,
      ...(row.aliases && { aliases: row.aliases }),
      description: row.about ?? `manage ${formatPlural(row.singular)}`,
      load: async () => {
        const [{ addMethods }, resource, addMore] = await Promise.all([
          import("./methods.js"),
          loadResource(row),
          row.loadMore?.(),
        ]);
        return (command) => {
          addMethods(command, resource);
          addMore?.(command);
        };
      },
    });
  }
}
