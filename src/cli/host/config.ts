// `arbor config`: the settings that a server would have with the same flags, environment and file.
import { formatValue, type Resolution, type SettingName, type ValueSource } from "../../config/config.js";
import { buildSchema } from "../../config/describe.js";
import { resolveOrigin } from "../../config/origin.js";
import { type Settings, type SettingTable, settings as table } from "../../config/settings.js";
import { formatFields } from "../output/table.js";
import { type Terminal, withStdout } from "../output/terminal.js";

/** `arbor config print` */
export async function configPrintCommand(resolution: Resolution, { json = false }: { json?: boolean }): Promise<void> {
  await withStdout(({ write, terminal }) => {
    const lines = json ? [formatJson(resolution)] : formatTable(resolution, terminal);
    return write(lines.map((line) => `${line}\n`).join(""));
  });
}

/** `arbor config check` */
export async function configCheckCommand(): Promise<void> {
  await withStdout(({ write }) => write("a server can use these settings\n"));
}

/** `arbor config schema` */
export async function configSchemaCommand(): Promise<void> {
  await withStdout(({ write }) => write(`${JSON.stringify(buildSchema(), undefined, 2)}\n`));
}

interface EffectiveSetting {
  readonly name: string;
  readonly value: string;
  /** What follows from this and other settings; undefined where that is the value, or is known only to a running server. */
  readonly effective: string | undefined;
  /** The behaviour without a value. */
  readonly unset: string | undefined;
  readonly source: ValueSource;
}

function listEffective({ settings, sources }: Resolution): EffectiveSetting[] {
  const effective = describeOrigin(settings);
  return Object.entries(table as SettingTable).map(([name, setting]) => ({
    name,
    value: formatValue(setting, settings[name as SettingName]),
    effective: effective[name],
    unset: setting.unset,
    source: sources[name] ?? { from: "default" },
  }));
}

function describeOrigin(settings: Settings): Readonly<Record<string, string>> {
  // The server gets its port from the system.
  if (settings.listen.port === 0 && settings.baseUrl === undefined) return {};
  const { baseUrl, issuer, audiences, errorDomain } = resolveOrigin(settings);
  return { baseUrl, issuer, audiences: audiences.join(), errorDomain };
}

function formatTable(resolution: Resolution, terminal: Terminal): string[] {
  const cells = listEffective(resolution).map(({ name, value, effective = value, unset = "none", source }) => [
    name,
    source.name ?? source.from,
    effective === "" ? `(${unset})` : effective,
  ]);
  return formatFields(["SETTING", "FROM", "VALUE"], cells, terminal);
}

function formatJson(resolution: Resolution): string {
  const entries = listEffective(resolution).map(({ name, value, effective, source }) => [
    name,
    { value: value === "" ? null : value, ...(effective !== undefined && { effective }), ...source },
  ]);
  return JSON.stringify(Object.fromEntries(entries), undefined, 2);
}
