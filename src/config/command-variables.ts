// The variables that are not settings. They are apart from the table of settings, which takes clients time to load.

/** Names the file of settings. */
export const CONFIG_VARIABLE = "ARBOR_CONFIG";

/** Names what `arbor copy` writes to. */
export const COPY_TARGET_VARIABLE = "ARBOR_COPY_TO";

/** What commands (docs/cli.md) and deploy/compose read and servers do not. A shell may have both. */
export const commandVariables: readonly string[] = [
  ...[CONFIG_VARIABLE, COPY_TARGET_VARIABLE],
  ...["ARBOR_API", "ARBOR_TOKEN", "ARBOR_CREDENTIALS", "ARBOR_IMAGE"],
];
