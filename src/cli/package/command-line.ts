// The command line of the package of commands over the network.
import type { CommandLine } from "../command-line.js";
import { hostCommands } from "../top-commands.js";

const names = hostCommands.filter((path) => !path.includes(" ")).join(", ");

export const packageCommandLine: CommandLine = {
  loadHost: async () => (await import("./host-commands.js")).hostCommands,
  hostNote: `The commands on the host (${names}) are in the package of the service.`,
};
