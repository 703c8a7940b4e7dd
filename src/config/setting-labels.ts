// What errors call a setting: the flag, the variable or the key of the file that gave its value.
import { flagOf, type SettingName, type Settings } from "./settings.js";

/** Where a value comes from, and what named it there, such as `--listen`, `ARBOR_LISTEN` or the path of the file. */
export interface ValueSource {
  readonly from: "flag" | "environment" | "file" | "default";
  readonly name?: string;
}

type ValueSources = Readonly<Record<string, ValueSource>>;

// Beside the settings, so that whatever has them can name them in its errors.
const sourcesOf = new WeakMap<Settings, ValueSources>();

/** Remembers where the values of these settings come from. */
export function rememberSources(values: Settings, sources: ValueSources): void {
  sourcesOf.set(values, sources);
}

/** What gave the value of a setting, such as `ARBOR_DATA`; its flag where nothing did. */
export function labelOf(values: Settings, name: SettingName): string {
  const source = sourcesOf.get(values)?.[name];
  return source === undefined || source.from === "default" ? flagOf(name) : describeSource(name, source);
}

/** Where a value was given, as errors name it. */
export function describeSource(key: string, { from, name = "" }: ValueSource): string {
  return from === "file" ? `${name}: ${key}` : name;
}
