// The command line: what commands there are and what they take. What they do is
// loaded only when one is called, so that a client command loads no server.
import { Command, CommanderError, Option } from "commander";
import {
  flagOf,
  resolveSettings,
  type SettingName,
  type Settings,
  SettingsError,
  settings,
  variableOf,
} from "../config/config.js";
import { addCompletion } from "./completion.js";
import { exitCodeOf } from "./exit-code.js";
import { addDemoCommand } from "./host/demo/commands.js";
import { addAuthCommands } from "./remote/auth/commands.js";
import { addIamCommands } from "./remote/iam/commands.js";

/** The settings that commands on the host need to open the installation. */
const hostSettings: readonly SettingName[] = [
  "data",
  "databaseUrl",
  "masterKeyFile",
  "listen",
  "baseUrl",
  "issuer",
  "tlsCert",
  "tlsKey",
];

/**
 * Runs one command.
 *
 * @param args the arguments behind `arbor`
 * @returns the exit code: 0 done, 2 wrong usage, 3 and up by the class of the error
 */
export async function run(args: readonly string[]): Promise<number> {
  try {
    await program().parseAsync([...args], { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`arbor: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof SettingsError ? 2 : exitCodeOf(error);
  }
}

function program(): Command {
  const arbor = new Command("arbor").description("Self-hostable platform API").exitOverride().showHelpAfterError();

  withSettings(arbor.command("serve").description("run the service"), Object.keys(settings) as SettingName[]).action(
    async (options) => (await import("./host/serve.js")).serve(settingsFrom(options)),
  );

  withSettings(
    arbor.command("bootstrap").description("create an organisation and its owner, on the host"),
    hostSettings,
  )
    .requiredOption("--org <name>", "name of the organisation")
    .option("--owner-issuer <url>", "issuer of the login provider that knows the owner")
    .option("--owner-subject <subject>", "what that issuer calls the owner")
    .option("--json", "print JSON")
    .action(async (options) => (await import("./host/host.js")).bootstrapCommand(settingsFrom(options), options));

  const admin = arbor.command("admin").description("operate the installation, on the host");
  withSettings(admin.command("token").description("print an API token for an identity"), hostSettings)
    .requiredOption("--identity <uid>", "the identity it speaks for")
    .option("--ttl <duration>", "how long it is valid, at most 1h", "1h")
    .option("--audience <url>", "what it is for; the base URL unless set")
    .action(async (options) => (await import("./host/host.js")).tokenCommand(settingsFrom(options), options));
  withSettings(admin.command("bind").description("bind an identity to a role at a group"), hostSettings)
    .requiredOption("--identity <uid>", "the identity")
    .requiredOption("--role <uid>", "the role")
    .requiredOption("--group <uid>", "the group")
    .action(async (options) => (await import("./host/host.js")).bindCommand(settingsFrom(options), options));
  withSettings(
    admin.command("identity").command("revoke <uid>").description("make all tokens of an identity void"),
    hostSettings,
  ).action(async (uid, options) => (await import("./host/host.js")).revokeCommand(settingsFrom(options), uid));
  withSettings(
    admin.command("group").command("verify <uid>").description("confirm that a root group is who its name says"),
    hostSettings,
  )
    .option("--kind <kind>", "what sort of organisation it is, such as ORG_KIND_CUSTOMER")
    .action(async (uid, options) =>
      (await import("./host/host.js")).verifyCommand(settingsFrom(options), uid, options),
    );
  const quota = admin.command("quota").description("how much one organisation may have, on the host");
  withSettings(quota.command("list").description("print what an organisation has and may have"), [
    ...hostSettings,
    "quotas",
  ])
    .requiredOption("--group <uid>", "the root group of the organisation")
    .option("--json", "print a JSON object per line")
    .action(async (options) => (await import("./host/quota.js")).quotaListCommand(settingsFrom(options), options));
  withSettings(
    quota
      .command("set <quota=limit...>")
      .description("set limits for an organisation, such as repos=500; repos=default takes one back"),
    hostSettings,
  )
    .requiredOption("--group <uid>", "the root group of the organisation")
    .action(async (limits, options) =>
      (await import("./host/quota.js")).quotaSetCommand(settingsFrom(options), limits, options),
    );
  const keys = admin.command("keys").description("keys of the installation, on the host");
  withSettings(keys.command("rotate").description("make a new key"), hostSettings)
    .addOption(
      new Option("--purpose <purpose>", "what the key is for")
        .choices(["api-token", "page-token", "audit", "registry"])
        .makeOptionMandatory(),
    )
    .action(async (options) => (await import("./host/keys.js")).rotateCommand(settingsFrom(options), options));
  withSettings(keys.command("revoke <kid>").description("remove a key of API tokens at once, with all it signed"), [
    ...hostSettings,
    "jwksMaxAge",
  ]).action(async (kid, options) => (await import("./host/keys.js")).revokeCommand(settingsFrom(options), kid));
  withSettings(keys.command("list").description("print the keys, the newest first"), hostSettings)
    .option("--json", "print a JSON object per line")
    .action(async (options) => (await import("./host/keys.js")).listCommand(settingsFrom(options), options));

  const audit = arbor.command("audit").description("read the audit log, on the host");
  withSettings(audit.command("list").description("print the newest rows first"), hostSettings)
    .option("--root <uid>", "the organisation; all unless set")
    .option("--limit <rows>", "how many rows at most", "50")
    .option("--json", "print a JSON object per line")
    .action(async (options) => (await import("./host/audit.js")).auditListCommand(settingsFrom(options), options));
  withSettings(audit.command("verify").description("prove that the log is what was sealed"), hostSettings)
    .option("--root <uid>", "the organisation; all unless set")
    .action(async (options) => (await import("./host/audit.js")).auditVerifyCommand(settingsFrom(options), options));
  const advisories = arbor.command("advisories").description("advisories about vulnerabilities, on the host");
  withSettings(advisories.command("import <paths...>").description("import OSV records"), hostSettings)
    .requiredOption("--group <uid>", "the group that the advisories belong to")
    .option("--progress", "tell on standard error how far the import has come, even if that is no terminal")
    .action(async (paths, options) =>
      (await import("./host/advisories/import.js")).importCommand(settingsFrom(options), paths, options),
    );

  const registry = arbor.command("registry").description("have a container registry trust this service, on the host");
  withSettings(registry.command("configure").description("write what the registry's configuration needs"), [
    ...hostSettings,
    "registryService",
    "registrySecretFile",
  ])
    .requiredOption("--out <directory>", "where to write it")
    .option("--mounted-at <path>", "where the registry sees that directory; the same place unless set")
    .action(async (options) =>
      (await import("./host/registry/configure.js")).configureCommand(settingsFrom(options), options),
    );
  withSettings(registry.command("sync").description("make repos and tags here what they are in the registry"), [
    ...hostSettings,
    "registryUrl",
    "registryService",
  ])
    .option("--progress", "tell on standard error how far it has come, even if that is no terminal")
    .action(async (options) => (await import("./host/registry/sync.js")).syncCommand(settingsFrom(options), options));
  addDemoCommand(arbor);
  addAuthCommands(arbor);
  addIamCommands(arbor);
  addCompletion(arbor);
  return arbor;
}

function withSettings(command: Command, names: readonly SettingName[]): Command {
  for (const name of names) {
    const setting = settings[name];
    const value = "placeholder" in setting ? ` <${setting.placeholder}>` : "";
    command.option(`${flagOf(name)}${value}`, `${setting.help} (${variableOf(name)})`);
    // A switch that is on unless told otherwise needs a way to be turned off.
    if (setting.fallback === true) command.option(`--no-${flagOf(name).slice(2)}`, `do not: ${setting.help}`);
  }
  return closedToOthers(command.option("--config <file>", "JSON file of settings (ARBOR_CONFIG)").exitOverride());
}

// What a command on the host makes is for its own user, unless it says otherwise.
function closedToOthers(command: Command): Command {
  return command.hook("preAction", () => {
    process.umask(0o077);
  });
}

function settingsFrom(options: Readonly<Record<string, string | boolean | undefined>>): Settings {
  const { config, ...flags } = options;
  const file = typeof config === "string" ? config : process.env.ARBOR_CONFIG;
  return resolveSettings({ flags, env: process.env, ...(file !== undefined && { file }) });
}
