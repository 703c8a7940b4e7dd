// Runs on the thread of the module hooks.
import { appendFileSync } from "node:fs";

let file;

/** Takes the file to write to. */
export function initialize(data) {
  file = data;
}

/** Loads as usual, and records. */
export async function load(url, context, next) {
  appendFileSync(file, `${url}\n`);
  return next(url, context);
}
