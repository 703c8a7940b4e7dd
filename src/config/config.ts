// Resolves the settings: flag over environment over file over default. Anything wrong is found before anything is opened,
// and all of it is reported at once. The origin, as others name the service, follows from them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_VARIABLE } from "./command-variables.js";
import { readConfigFile } from "./config-file.js";
import {
  describeReplaced,
  describeUnknownKey,
  describeUnknownVariable,
  findOtherVariables,
  replacedSettings,
} from "./names.js";
import { findContradictions } from "./relations.js";
import { checkDataDirectory, checkSettingFile, readSettingFile } from "./setting-files.js";
import type { Setting } from "./setting-types.js";
import {
  describeSource,
  flagOf,
  labelOf,
  listAcceptedNames,
  rememberSources,
  type SettingName,
  type Settings,
  SettingsError,
  type SettingTable,
  settingNames,
  settings,
  sourcesOf,
  type ValueSource,
  type ValueSources,
  variableOf,
} from "./settings.js";

export { isLoopback } from "./setting-types.js";
export {
  flagOf,
  labelOf,
  type SettingName,
  type Settings,
  SettingsError,
  settingNames,
  settings,
  type ValueSource,
  variableOf,
} from "./settings.js";

/** Where settings may be given. */
export interface Sources {
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A JSON file whose keys are setting names, from `--config` or `ARBOR_CONFIG`. */
  readonly file?: string | undefined;
  /** Whether all files that settings name are checked. Servers read them all, commands on the host the ones they need. */
  readonly checkFiles?: boolean;
  /** A PostgreSQL database that the command writes to beside its own, which the settings of TLS may be for. */
  readonly targetUrl?: string | undefined;
}

/** All settings, and where each comes from. */
export interface Resolution {
  readonly settings: Settings;
  readonly sources: Readonly<Record<string, ValueSource>>;
}

/** Resolves all settings. @throws SettingsError naming everything that is wrong. */
export function resolveSettings(sources: Sources): Settings {
  return resolveWithSources(sources).settings;
}

/**
 * Resolves all settings and says where each comes from.
 *
 * @param table the settings there are; tests add some
 * @throws SettingsError naming everything that is wrong
 */
export function resolveWithSources(
  { flags, env, file, checkFiles = false, targetUrl }: Sources,
  table: SettingTable = settings,
): Resolution {
  const problems = findOtherVariables(env, table).unknown.map((name) => describeUnknownVariable(name, table));
  for (const key of Object.keys(replacedSettings)) {
    const replaced = flags[key] === undefined ? undefined : describeReplaced(key, flagOf(key));
    if (replaced !== undefined) problems.push(replaced);
  }
  const configName = file !== undefined && file === env[CONFIG_VARIABLE] ? CONFIG_VARIABLE : "--config";
  const fromFile = file === undefined ? undefined : readConfigFile(file, configName, problems);
  const accepted = new Set(listAcceptedNames(table));
  for (const key of fromFile?.keys() ?? []) {
    if (!accepted.has(key)) problems.push(`${configName}: ${file}: ${describeUnknownKey(key, table)}`);
  }
  const found: FoundValues = { values: {}, sources: {} };
  for (const [key, setting] of Object.entries(table)) {
    const { formerName } = setting;
    const names = formerName === undefined ? [key] : [key, formerName];
    const candidates: readonly { readonly value: unknown; readonly source: ValueSource }[] = [
      ...names.map((name) => ({ value: flags[name], source: { from: "flag", name: flagOf(name) } as const })),
      ...names.map((name) => {
        const variable = variableOf(name);
        return { value: env[variable], source: { from: "environment", name: variable } as const };
      }),
      ...names.map((name) => {
        const source = { from: "file", name: file ?? "", ...(name !== key && { key: name }) } as const;
        return { value: fromFile?.get(name), source };
      }),
    ];
    const given = candidates.find(({ value }) => value !== undefined && value !== "");
    found.values[key] = setting.fallback;
    found.sources[key] = given?.source ?? { from: "default" };
    if (given === undefined) continue;
    const label = describeSource(key, given.source);
    const { jsonType } = setting;
    if (given.source.from === "file" && typeof given.value !== "string" && typeof given.value !== jsonType) {
      problems.push(`${label} must be a string${jsonType === undefined ? "" : ` or a ${jsonType}`}`);
      continue;
    }
    try {
      const value = setting.parse(String(given.value));
      found.values[key] = value;
      if (!checkFiles || setting.contentOf !== undefined) continue;
      const files = setting.isFile ? [String(given.value)] : (setting.listFiles?.(value) ?? []);
      for (const file of files) checkSettingFile(setting, file, label, problems);
    } catch (error) {
      problems.push(`${label} ${(error as Error).message}`);
    }
  }
  readSecretFiles(table, found, problems);
  const resolved = found.values as Settings;
  rememberSources(resolved, found.sources);
  if (checkFiles && resolved.databaseUrl === undefined && found.sources.databaseUrlFile?.from === "default") {
    checkData(resolved, problems);
  }
  if (problems.length === 0) problems.push(...findContradictions(resolved, checkFiles, targetUrl));
  if (problems.length > 0) throw new SettingsError(problems);
  return { settings: resolved, sources: found.sources };
}

// With PostgreSQL nothing is in the data directory.
function checkData(values: Settings, problems: string[]): void {
  const label = labelOf(values, "data");
  const before = problems.length;
  checkDataDirectory(values.data, label, problems);
  const masterKey = join(values.data, "master.key");
  if (values.masterKeyFile !== undefined || problems.length > before || !existsSync(masterKey)) return;
  checkSettingFile(settings.masterKeyFile, masterKey, label, problems);
}

interface FoundValues {
  readonly values: Record<string, unknown>;
  readonly sources: Record<string, ValueSource>;
}

// A secret may be in a file, so that no list of processes shows it.
function readSecretFiles(table: SettingTable, found: FoundValues, problems: string[]): void {
  for (const [key, setting] of Object.entries(table)) {
    const { contentOf } = setting;
    const source = found.sources[key];
    const file = found.values[key];
    if (contentOf === undefined || source === undefined || typeof file !== "string") continue;
    const label = describeSource(key, source);
    const given = found.sources[contentOf];
    const target = table[contentOf];
    if (target === undefined || given === undefined) throw new TypeError(`${contentOf} is not a setting`);
    if (given.from !== "default") {
      problems.push(`${describeSource(contentOf, given)} and ${label} cannot both be given`);
      continue;
    }
    const content = readSettingFile(setting, file, label, problems);
    if (content === undefined) continue;
    try {
      found.values[contentOf] = target.parse(content.toString().replace(/\r?\n$/, ""));
      // The file of settings alone would look as if it had the secret itself.
      found.sources[contentOf] = { ...source, name: label };
    } catch (error) {
      problems.push(`${label}: ${file} ${(error as Error).message}`);
    }
  }
}

/** The names of settings that differ from their defaults, with their values as text; secrets as `***`. */
export function describeChanged(values: Settings): Record<string, string> {
  const changed: Record<string, string> = {};
  for (const [name, setting] of Object.entries(settings) as [SettingName, Setting<unknown>][]) {
    const text = formatValue(setting, values[name]);
    if (text !== formatValue(setting, setting.fallback)) changed[name] = text;
  }
  return changed;
}

/** Settings as texts, secrets included, and where they come from: for a process of the same service. */
export interface SettingTexts {
  readonly texts: Readonly<Record<string, string>>;
  readonly sources: ValueSources;
}

export function writeSettings(values: Settings): SettingTexts {
  const texts: Record<string, string> = {};
  for (const [name, setting] of Object.entries(settings) as [SettingName, Setting<unknown>][]) {
    if (values[name] !== undefined) texts[name] = setting.format(values[name]);
  }
  return { texts, sources: sourcesOf(values) };
}

/** Reads what {@link writeSettings} wrote. */
export function readSettings({ texts, sources }: SettingTexts): Settings {
  const read = (name: SettingName) => {
    const text = texts[name];
    return text === undefined ? undefined : settings[name].parse(text);
  };
  const values = Object.fromEntries(settingNames.map((name) => [name, read(name)])) as unknown as Settings;
  rememberSources(values, sources);
  return values;
}

/** A value as text: `***` for a secret, empty where there is none. */
export function formatValue(setting: Setting<unknown>, value: unknown): string {
  if (value === undefined) return "";
  return setting.secret ? "***" : setting.format(value);
}
