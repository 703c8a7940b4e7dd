// What an answer about rights does not include, in words.
import type { JsonObject } from "@bufbuild/protobuf";
import { escapeControls } from "../../output/terminal.js";
import { type Format, isTable } from "../flags.js";

/** Lists what an answer does not include, a sentence each. */
export function listNotes({ methodRule, partial, unconfirmed }: JsonObject): string[] {
  const notes: string[] = [];
  if (typeof methodRule === "string" && methodRule !== "") notes.push(`of the method itself: ${methodRule}`);
  if (partial === true) {
    notes.push("partial: groups above or roles that you may not list were left out; they may grant more");
  }
  if (unconfirmed === true) {
    notes.push(
      "unconfirmed: you cannot know whether this person ever signed in here; the answer is by role bindings alone",
    );
  }
  return notes;
}

/** Prints notes to standard error beside a table. Other formats have the members of the response. */
export function printNotes(response: JsonObject, format: Format): void {
  if (!isTable(format)) return;
  for (const note of listNotes(response)) process.stderr.write(`arbor: ${escapeControls(note)}\n`);
}
