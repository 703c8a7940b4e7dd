// What is generated from the table of settings: the help of flags, docs/settings.md and the JSON schema of the file.
import { SCHEMA_KEY } from "./config-file.js";
import type { Setting } from "./setting-types.js";
import { flagOf, type SettingTable, settingGroups, settings, variableOf } from "./settings.js";

/** A flag as the command line declares it. */
export interface FlagDescription {
  /** Such as `--listen <host:port>`. */
  readonly flags: string;
  readonly help: string;
}

/** Describes the flags of a setting: that which sets it, and for switches that are on that which turns them off. */
export function describeFlags(name: string, table: SettingTable = settings): readonly FlagDescription[] {
  const setting = settingOf(name, table);
  const { placeholder, isSwitch } = setting;
  const value = placeholder === undefined ? "" : isSwitch ? ` [${placeholder}]` : ` <${placeholder}>`;
  const described = { flags: `${flagOf(name)}${value}`, help: describeSetting(name, setting) };
  if (!isSwitch || setting.default === "false") return [described];
  return [described, { flags: `--no-${flagOf(name).slice(2)}`, help: `the opposite of ${flagOf(name)}` }];
}

function describeSetting(name: string, setting: Setting<unknown>): string {
  const { help, range, hasLimits, see } = setting;
  const defaultText = describeDefault(setting);
  return [
    help,
    ...(hasLimits ? [range] : []),
    ...(defaultText === undefined ? [] : [`${defaultText} unless set`]),
    ...(see === undefined ? [] : [`see docs/${see.replace(/#.*$/, "")}`]),
  ]
    .join("; ")
    .concat(` (${variableOf(name)})`);
}

// That a switch is off and that there is none of something goes without saying.
function describeDefault({ default: text, unset }: Setting<unknown>): string | undefined {
  const described = unset ?? text;
  return described === "" || described === "none" || described === "false" ? undefined : described;
}

const INTRODUCTION = `# Settings

<!-- Written by \`npm run gen\` from src/config/settings.ts. -->

A flag overrides an environment variable. A variable overrides the JSON file that \`--config\` or \`ARBOR_CONFIG\` names. The
file overrides the default. An empty value counts as absent.

- \`arbor config print\` prints every setting with its value and where it comes from, secrets as \`***\`; \`-o json\` for
  programs. For URLs and audiences that you did not set, it prints the values that follow from other settings.
  \`arbor config check\` prints everything that is wrong with the settings and the files they name. Both take the flags, the
  environment and the file of \`arbor serve\`.
- To change a setting, set it where the server gets it (flag, variable or file), run \`arbor config check\`, and restart the server. The
  line \`started\` of its log has the settings that differ from their defaults.
- Switches need no value as a flag. In the environment and in the file they are \`true\` or \`false\`.
- Durations are a number of \`s\`, \`m\`, \`h\` or \`d\`; sizes a number of \`KiB\`, \`MiB\` or \`GiB\`.
- The file is strict JSON without comments. [settings.schema.json](settings.schema.json) is its JSON schema, which
  \`arbor config schema\` prints as well; a key \`$schema\` tells an editor where it is. The schema knows names, types, words and
  the limits of numbers; \`arbor config check\` checks everything.
- The server does not start if an environment variable begins with \`ARBOR_\` but is not a setting, or if the file has an
  unknown key. Exceptions are \`ARBOR_CONFIG\` and the variables of the commands for clients ([cli.md](cli.md)). Variables
  that Kubernetes sets for Services called \`arbor\` or \`arbor-…\`, such as \`ARBOR_PORT\` and \`ARBOR_DB_SERVICE_HOST\`,
  are logged and ignored.
- A secret can be given as a file, which may end in a line break. Files of secrets must belong to the user that runs Arbor,
  with mode 0600, or to root, with mode 0640 at most. A file that a setting names may have at most 16 MiB.
`;

/** Formats docs/settings.md: an introduction, and a heading for each setting below that of its group. */
export function formatPage(groups: Readonly<Record<string, SettingTable>> = settingGroups): string {
  const sections = Object.entries(groups).flatMap(([group, table]) => [
    `## ${group}\n`,
    `${Object.keys(table)
      .map((name) => `[\`${flagOf(name)}\`](#${flagOf(name)})`)
      .join(", ")}\n`,
    ...Object.entries(table).map(([name, setting]) => formatSetting(name, setting)),
  ]);
  return [INTRODUCTION, ...sections].join("\n");
}

function formatSetting(name: string, setting: Setting<unknown>): string {
  const { help, range, since, see, secret, contentOf, formerName } = setting;
  const { default: text, unset } = setting;
  const value = unset === undefined && text ? code(text) : escapeProse(unset ?? "none");
  const notes = [
    `${help[0]?.toUpperCase()}${markFlags(escapeProse(help.slice(1)))}.`,
    ...(secret ? ["It is a secret."] : []),
    ...(contentOf === undefined ? [] : [`Set it instead of ${code(flagOf(contentOf))}.`]),
    ...(formerName === undefined ? [] : [`Its former name ${code(flagOf(formerName))} is still accepted.`]),
    ...(see === undefined ? [] : [`See [${see.replace(/#.*$/, "")}](${see}).`]),
  ];
  const flags = describeFlags(name, { [name]: setting }).map(({ flags }) => code(flags));
  return `### ${flagOf(name)}

${notes.join(" ")}

- Default: ${value}
- Flag: ${flags.join(", ")}
- Variable: ${code(variableOf(name))}
- File key: ${code(name)}
- Accepted: ${escapeProse(range)}
- Since: ${since}
`;
}

function code(text: string): string {
  return `\`${text}\``;
}

// Outside of code, what looks like a tag or an emphasis is neither.
function escapeProse(text: string): string {
  const sections = text.split("`");
  return sections
    .map((section, i) => (i % 2 === 1 ? section : section.replaceAll("<", "&lt;").replaceAll("*", "\\*")))
    .join("`");
}

function markFlags(text: string): string {
  return text.replace(/(?<![`\w-])--[a-z][a-z-]*/g, code);
}

/** Builds the JSON schema of the file of settings. */
export function buildSchema(table: SettingTable = settings): Record<string, unknown> {
  const properties = Object.entries(table).map(([name, setting]) => {
    const description = `${describeSetting(name, setting)}; since ${setting.since}`;
    return [name, { description, ...setting.schema, ...describeSchemaDefault(setting) }];
  });
  const former = Object.entries(table).flatMap(([name, { formerName, schema }]) =>
    formerName === undefined
      ? []
      : [[formerName, { description: `the former name of ${name}`, deprecated: true, ...schema }]],
  );
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of arbor",
    description: "The file that --config or ARBOR_CONFIG names; `arbor config check` checks its values.",
    type: "object",
    properties: { [SCHEMA_KEY]: { type: "string" }, ...Object.fromEntries([...properties, ...former]) },
    additionalProperties: false,
  };
}

function describeSchemaDefault({ default: text = "", jsonType }: Setting<unknown>): Record<string, unknown> {
  if (text === "") return {};
  const isBoolean = jsonType === "boolean" && /^(true|false)$/.test(text);
  return { default: isBoolean ? text === "true" : text };
}

function settingOf(name: string, table: SettingTable): Setting<unknown> {
  const setting = table[name];
  if (setting === undefined) throw new TypeError(`${name} is not a setting`);
  return setting;
}
