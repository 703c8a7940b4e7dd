// Which environment variables and keys are settings. A misspelt one would otherwise be ignored, and the default apply.
import { closestMatch } from "leven";
import { commandVariables } from "./command-variables.js";
import { listAcceptedNames, type SettingTable, settings, variableOf } from "./settings.js";

/**
 * What Kubernetes sets in every container for the Services of its namespace, if one is called `arbor` or `arbor-…`. No
 * setting has such a name.
 */
const KUBERNETES =
  /^ARBOR_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;

/** Whether Kubernetes sets variables of this name for Services. */
export function isKubernetesVariable(name: string): boolean {
  return KUBERNETES.test(name);
}

/** The variables of an environment that begin with `ARBOR_` and set nothing. */
export interface OtherVariables {
  /** What Kubernetes may have set. */
  readonly ignored: readonly string[];
  /** What nothing sets but an operator who misspelt it. */
  readonly unknown: readonly string[];
}

/** Finds the variables of an environment that begin with `ARBOR_` and set nothing. */
export function findOtherVariables(
  env: Readonly<Record<string, string | undefined>>,
  table: SettingTable = settings,
): OtherVariables {
  const known = new Set([...listAcceptedNames(table).map(variableOf), ...commandVariables]);
  const others = Object.keys(env).filter((name) => name.startsWith("ARBOR_") && !known.has(name));
  return {
    ignored: others.filter(isKubernetesVariable).sort(),
    unknown: others.filter((name) => !isKubernetesVariable(name)).sort(),
  };
}

/** Settings of earlier versions, and what replaces them. */
export const replacedSettings: Readonly<Record<string, string>> = {
  overloadDelay: "calls wait for their turn instead of being rejected; --max-wait (maxWait) says how long",
};

/** Describes a setting of an earlier version, by the name that was given; undefined if it is none. */
export function describeReplaced(key: string, name: string): string | undefined {
  const successor = replacedSettings[key];
  return successor === undefined ? undefined : `${name} is no setting any more: ${successor}`;
}

/** Describes an environment variable that is not a setting, with the name that was probably meant. */
export function describeUnknownVariable(name: string, table: SettingTable = settings): string {
  const replaced = Object.keys(replacedSettings).find((key) => variableOf(key) === name);
  if (replaced !== undefined) return describeReplaced(replaced, name) ?? name;
  const known = [...Object.keys(table).map(variableOf), ...commandVariables];
  return describeUnknown(
    name,
    suggestName(name, known, (one) => simplify(one.slice("ARBOR_".length))),
  );
}

/** Describes a key that is not a setting, with the name that was probably meant. */
export function describeUnknownKey(key: string, table: SettingTable = settings): string {
  return describeReplaced(key, key) ?? describeUnknown(key, suggestName(key, Object.keys(table), simplify));
}

function describeUnknown(name: string, suggestion: string | undefined): string {
  return `${name} is not a setting${suggestion === undefined ? "" : `; did you mean ${suggestion}?`}`;
}

/** The proportion of characters that may differ from a name that is suggested. */
const MAX_DIFFERENCE = 0.3;

function suggestName(name: string, known: readonly string[], toWord: (name: string) => string): string | undefined {
  const names = new Map(known.map((one) => [toWord(one), one]));
  const word = toWord(name);
  const closest = closestMatch(word, [...names.keys()], { maxDistance: Math.ceil(word.length * MAX_DIFFERENCE) });
  return closest === undefined ? undefined : names.get(closest);
}

// The name of a flag or of a variable in a file is as close to the key as the key itself.
function simplify(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]|^arbor_/g, "");
}
