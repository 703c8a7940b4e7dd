/** The name of a group after `version` writes; versions grow. */
export function nameOf(version: number): string {
  return `v${version}`;
}

/** The version that a name stands for. */
export function versionOf(name: string): number {
  return Number(name.slice(1));
}
