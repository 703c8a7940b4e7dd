// `arbor scim`: the directory that sends people to an identity provider.
import type { Command } from "commander";
import { addMethods } from "../iam/commands.js";
import { loadCommands, type ResourceCommand } from "../iam/resource-commands.js";

const { columns = [], methods } = await loadCommands("SCIM user");
const { list } = methods;
if (list === undefined) throw new TypeError("people of directories have no list");

const directories: ResourceCommand = {
  name: "scim",
  singular: "directory",
  methods: {},
  actions: [{ name: "users", method: list, description: "list the people that the directory has sent", columns }],
};

/** Adds `scim` and its commands. */
export function addScimCommands(arbor: Command): void {
  const scim = arbor.command("scim").description("manage the directory that sends people to an identity provider");
  addMethods(scim, directories);
}
