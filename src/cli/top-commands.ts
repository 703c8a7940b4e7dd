// The commands directly below `arbor`, in the order of the help.
import { addLazyCommand, type FillCommand, type LazyCommand } from "./lazy-command.js";

const START = "Log in and look around:";
const PEOPLE = "People and rights:";
const RESOURCES = "Resources:";
const HOST = "The service, on its host:";
const OTHERS = "Other commands:";

/** How the commands on the host are filled. Those of `audit` are over the network as well. */
export type HostCommands = Readonly<Record<HostPath | "audit", FillCommand>>;

/** Loads the commands on the host, or what stands for them. */
export type LoadHost = () => Promise<HostCommands>;

/** The commands that are on the host alone, with what the help says of them. */
const hostDescriptions = {
  serve: "run the service",
  bootstrap: "create an organisation and its owner",
  config: "the settings of a server, from flags, environment and file",
  migrate: "bring the database of an older version up to date",
  check: "read the whole database and report faults",
  backup: "copy the database of SQLite into a new directory, also while a server runs",
  restore: "put a backup into an empty data directory",
  copy: "copy the installation from SQLite to PostgreSQL or back",
  admin: "operate the installation: operator roles, quotas, keys, jobs",
} as const;

/** Those that stand among commands over the network. */
const placedElsewhere = {
  demo: "try the service out on this machine, with sample data",
  "advisories import": "import OSV records, on the host",
  "registry configure": "write the configuration and the certificates for the registry, on the host",
  "registry sync": "update repos and tags from the registry, on the host",
  "registry move": "copy images of verified organisations from their uids to their names, on the host",
} as const;

/** The name of a command on the host. */
export type HostPath = keyof typeof hostDescriptions | keyof typeof placedElsewhere;

/** The commands on the host, without those of `audit`. */
export const hostCommands = [...Object.keys(hostDescriptions), ...Object.keys(placedElsewhere)] as readonly HostPath[];

/**
 * Lists the commands.
 *
 * @param loadHost loads those on the host
 * @param isHostHidden whether the help leaves those on the host out
 */
export function listTopCommands(loadHost: LoadHost, isHostHidden: boolean): LazyCommand[] {
  const onHost = (path: HostPath | "audit") => async () => (await loadHost())[path];
  const host = (path: HostPath, description: string, name = path as string): LazyCommand => ({
    ...{ name, description, hidden: isHostHidden, load: onHost(path) },
  });
  // Their flags are those of settings, which take longer to load than the commands beside them.
  const withHost = (fill: FillCommand, ...paths: readonly (keyof typeof placedElsewhere)[]): FillCommand => {
    return (command) => {
      for (const path of paths) {
        addLazyCommand(command, host(path, placedElsewhere[path], path.slice(path.indexOf(" ") + 1)));
      }
      fill(command);
    };
  };
  const row = (group: string, name: string, description: string, load: LazyCommand["load"]): LazyCommand => ({
    ...{ group, name, description, load },
  });
  return [
    row(
      START,
      "login",
      "log in with a browser, or as an identity with an OIDC token",
      async () => (await auth()).addLogin,
    ),
    row(START, "logout", "end the login, and remove it from this machine", async () => (await auth()).addLogout),
    row(START, "status", "show who is logged in", async () => (await auth()).addStatus),
    row(
      START,
      "whoami",
      "print who you are to the service, and what you may do",
      async () => (await people()).addWhoami,
    ),
    row(START, "docs", "open the documentation of the service", async () => (await service()).addDocs),
    { ...host("demo", placedElsewhere.demo), group: START },

    row(PEOPLE, "members", "who holds roles in a group", async () => (await people()).addMembers),
    row(PEOPLE, "can", "print whether an identity may do something", async () => (await access()).addCan),
    row(PEOPLE, "access", "who may do what, where, and why", async () => (await access()).addAccess),
    row(
      PEOPLE,
      "find",
      "find what a uid, a name, an address, a digest or the id of a request names",
      async () => (await access()).addFind,
    ),

    row(
      RESOURCES,
      "iam",
      "manage groups, identities, roles, bindings, invites, login providers",
      async () => (await import("./remote/iam/commands.js")).addIamCommands,
    ),
    row(RESOURCES, "registry", "a container registry that trusts this service; its repos and tags", async () =>
      withHost(
        (await import("./remote/registry/commands.js")).addRegistryCommands,
        "registry configure",
        "registry sync",
        "registry move",
      ),
    ),
    row(RESOURCES, "advisories", "advisories about vulnerabilities", async () =>
      withHost((await import("./remote/advisories/commands.js")).addAdvisoriesCommands, "advisories import"),
    ),
    row(
      RESOURCES,
      "events",
      "manage subscriptions to events, and follow events",
      async () => (await import("./remote/events/commands.js")).addEventsCommands,
    ),
    row(
      RESOURCES,
      "scim",
      "manage the directory that sends people to a login provider",
      async () => (await import("./remote/scim/commands.js")).addScimCommands,
    ),
    row(RESOURCES, "audit", "what was changed, when and by whom", async () =>
      fillBoth(await onHost("audit")(), (await import("./remote/audit/api-commands.js")).addAuditApiCommands),
    ),
    row(
      RESOURCES,
      "apply",
      "bring an organisation to the state in a file: groups, identities, roles, bindings, subscriptions",
      async () => (await import("./remote/apply/commands.js")).addApply,
    ),
    row(
      RESOURCES,
      "export",
      "write an organisation as a file for `arbor apply`, or for Terraform",
      async () => (await import("./remote/apply/commands.js")).addExport,
    ),

    ...Object.entries(hostDescriptions).map(([path, text]) => ({ ...host(path as HostPath, text), group: HOST })),

    row(
      OTHERS,
      "auth",
      "log in, and use the login elsewhere: tokens, docker, sessions",
      async () => (await auth()).addAuthCommands,
    ),
    row(
      OTHERS,
      "api",
      "call any method of the API by its name",
      async () => (await import("./remote/api/commands.js")).addApiCommands,
    ),
    row(
      OTHERS,
      "completion",
      "print a script that completes commands and names in a shell",
      async () => (await import("./completion.js")).addCompletion,
    ),
    {
      name: "complete-names",
      description: "print the names that a shell completes",
      hidden: true,
      load: async () => (await import("./complete-names.js")).addCompleteNames,
    },
    row(
      OTHERS,
      "version",
      "print the versions of this program and of the service",
      async () => (await service()).addVersion,
    ),
    row(
      OTHERS,
      "help",
      "print the help of a command, such as `arbor help iam groups`",
      async () => (await import("./help.js")).addHelp,
    ),
  ];
}

const auth = () => import("./remote/auth/commands.js");
const people = () => import("./remote/people/commands.js");
const access = () => import("./remote/access/commands.js");
const service = () => import("./remote/service-commands.js");

function fillBoth(first: FillCommand, second: FillCommand): FillCommand {
  return (command) => {
    first(command);
    second(command);
  };
}
