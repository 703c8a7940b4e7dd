// Directories that operators name: one function creates each, and ends where none can be created.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createDirectories } from "../../src/kernel/directories.js";
import { spawn } from "../support/child-process.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const codeOf = (work: () => unknown): string => {
  try {
    work();
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
  return "none";
};

test("creates what is missing, with its permissions, and says where that begins", () => {
  const at = tempDir();
  const directory = join(at, "a", "b", "c");
  assert.equal(createDirectories(directory, 0o700), join(at, "a"));
  for (const path of [directory, join(at, "a", "b"), join(at, "a")]) assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(createDirectories(directory), undefined);
  assert.equal(createDirectories(`${directory}/`), undefined);
  mkdirSync(join(at, "other"));
  symlinkSync(join(at, "other"), join(at, "link"));
  assert.equal(createDirectories(join(at, "link", "d")), join(at, "link", "d"));
  assert.ok(existsSync(join(at, "other", "d")));
});

test("ends with the error of the system where something else is in the way", () => {
  const at = tempDir();
  writeFileSync(join(at, "file"), "");
  symlinkSync(join(at, "nowhere"), join(at, "dangling"));
  assert.equal(
    codeOf(() => createDirectories(join(at, "file"))),
    "EEXIST",
  );
  assert.equal(
    codeOf(() => createDirectories(join(at, "file", "a"))),
    "ENOTDIR",
  );
  assert.equal(
    codeOf(() => createDirectories(join(at, "dangling"))),
    "EEXIST",
  );
});

const isLinux = existsSync("/proc/self/ns");

test("ends below /proc, and says so", { skip: !isLinux && "there is no /proc" }, () => {
  for (const path of ["/proc/arbor", "/proc/arbor/data/backup", "/proc/self/arbor"]) {
    assert.ok(["ENOTSUP", "EPERM", "EACCES"].includes(codeOf(() => createDirectories(path))), path);
  }
  assert.throws(() => createDirectories("/proc/arbor/data"), /^Error: no directory can be created in \/proc$/);
});

// If this fails, Node's own function ends by now, and this one may go.
test("control: Node's recursive mkdir does not end there", { skip: !isLinux && "there is no /proc" }, async () => {
  const program = `try { require("fs").mkdirSync("/proc/arbor/data", { recursive: true }) } catch {}`;
  const child = spawn(process.execPath, ["-e", `${program}; console.log("ended")`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let used = 0;
  let output = "";
  child.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  // By its processor time, so that a busy machine changes nothing. A process that starts takes less than a fifth of it.
  const isOver = await Promise.race([exited.then(() => true), untilUsed(1_000)]);
  child.kill("SIGKILL");
  await exited;
  assert.deepEqual([isOver, output], [false, ""], `${used}`);

  async function untilUsed(ms: number): Promise<false> {
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      // utime and stime, in hundredths of a second.
      used = (Number(fields[11]) + Number(fields[12])) * 10;
      if (used > ms) return false;
    }
  }
});

test("no other place of the source creates directories recursively", () => {
  const sources = readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && path !== join("kernel", "directories.ts"),
  );
  assert.ok(sources.length > 500);
  const found = sources.filter((path) =>
    /\bmkdir(Sync)?\b(?!temp)/.test(withoutTexts(readFileSync(join(PROJECT, "src", path), "utf8"))),
  );
  assert.deepEqual(found, []);
});

// Without comments and texts, in which the name of the function may stand.
function withoutTexts(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"/g, "");
}
