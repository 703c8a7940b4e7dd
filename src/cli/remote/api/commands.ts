// `arbor api`: the methods of the API by their names, also those without a command of their own.
import { type Command, Option } from "commander";
import { addConnectionFlags, addJqFlag, addOutputFlags } from "../flags.js";

/** Fills `api`. */
export function addApiCommands(api: Command): void {
  const list = api
    .command("list")
    .description("list the methods, with the commands that call them; nothing is sent to the service")
    .argument("[text]", "only methods whose name contains this text, in any case");
  addOutputFlags(list).action(async (text, given) => (await import("./run.js")).listMethods(api, text, given));

  const call = api
    .command("call")
    .description("call a method without asking for a confirmation, and print its responses as JSON")
    .argument("<method>", "such as GroupsService/ListGroups, with as much of the package before it as makes it unique")
    .option("-f, --file <file>", "JSON or YAML of the request, or - for standard input; empty unless set")
    .addOption(
      new Option("-o, --output <format>", "format of the response; a stream has a line of JSON for each")
        .choices(["json", "jsonl", "yaml"])
        .default("json"),
    );
  addConnectionFlags(addJqFlag(call)).action(async (method, given) =>
    (await import("./run.js")).callMethod(method, given),
  );
}
