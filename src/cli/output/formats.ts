/** The formats of `--output`, the default first. */
export const FORMATS = ["table", "json", "jsonl", "yaml"] as const;

/** A format of `--output`. */
export type Format = (typeof FORMATS)[number];
