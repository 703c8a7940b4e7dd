// Reads the instructions of a Containerfile.
import { readFileSync } from "node:fs";

/** An instruction, such as `{ name: "USER", value: "65532:65532" }`. */
export interface Instruction {
  readonly name: string;
  readonly value: string;
}

/** The instructions of the last stage of a Containerfile, in their order; continued lines are joined. */
export function readLastStage(path: string): Instruction[] {
  const lines = readFileSync(path, "utf8")
    .replace(/^\s*#.*\n/gm, "")
    .replace(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const instructions = lines.map((line) => {
    const [, name = "", value = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    return { name, value };
  });
  const from = instructions.findLastIndex(({ name }) => name === "FROM");
  return instructions.slice(from);
}

/** The variables that a stage sets with `ENV NAME=value …`. */
export function readEnvironment(stage: readonly Instruction[]): Record<string, string> {
  const assignments = stage.filter(({ name }) => name === "ENV").flatMap(({ value }) => value.split(/\s+/));
  return Object.fromEntries(assignments.map((text) => [text.split("=")[0] ?? "", text.slice(text.indexOf("=") + 1)]));
}

/** The JSON array of an instruction such as `ENTRYPOINT ["arbor"]`, or of the command of `HEALTHCHECK`. */
export function readExecForm(stage: readonly Instruction[], name: string): string[] {
  const { value } = stage.findLast((instruction) => instruction.name === name) ?? { value: "[]" };
  return JSON.parse(value.slice(value.indexOf("["))) as string[];
}
