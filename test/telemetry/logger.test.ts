import assert from "node:assert/strict";
import { it } from "node:test";
import { DrizzleQueryError } from "drizzle-orm";
import { createLogger } from "../../src/telemetry/logger.js";
import { spawnSync } from "../support/child-process.js";

function collectLines(
  level: Parameters<typeof createLogger>[0],
  write: (logger: ReturnType<typeof createLogger>) => void,
) {
  const lines: string[] = [];
  write(createLogger(level, { write: (line) => lines.push(line) }));
  return lines;
}

it("credentials are never written, however deep", () => {
  const [line = ""] = collectLines("info", (logger) =>
    logger.info({
      authorization: "hidden",
      headers: { Authorization: "hidden", "x-auth-token": "hidden", cookie: "hidden" },
      deep: [{ client_secret: { value: "hidden" }, refreshToken: "hidden", tokenId: "shown" }],
      err: Object.assign(new Error("shown"), { token: "hidden" }),
      settings: { registrySecretFile: "/shown", "secret-file": "/shown", secretFiles: "hidden" },
    }),
  );
  assert.equal(line.includes("hidden"), false, line);
  const { deep, err, level, settings } = JSON.parse(line);
  assert.deepEqual([settings.registrySecretFile, settings["secret-file"]], ["/shown", "/shown"]);
  assert.equal(level, "info");
  assert.equal(deep[0].tokenId, "shown");
  assert.equal(err.message, "shown");
  assert.match(err.stack, /logger\.test/);
});

it("what refers to itself has an end", () => {
  const loop: Record<string, unknown> = { name: "a" };
  loop.self = loop;
  assert.equal(collectLines("info", (logger) => logger.info({ loop })).length, 1);
});

it("only lines of the level and above are written", () => {
  const lines = collectLines("warn", (logger) => {
    logger.info("no");
    logger.warn("yes");
  });
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ["yes"],
  );
});

it("nothing of an error is written but its name, message, stack and causes", () => {
  class DatabaseError extends Error {
    override readonly name = "DatabaseError";
    readonly detail = "Key (email)=(hidden@example.org) already exists.";
    readonly parameters = ["hidden"];
  }
  const query = "insert into people values ($1)";
  const driver = new DatabaseError("duplicate key value violates unique constraint");
  const wrapped = new DrizzleQueryError(query, ["hidden", 7], driver);
  // The control: what would be written otherwise.
  assert.match(`${wrapped.message}${wrapped.stack}${JSON.stringify(driver)}`, /hidden[\s\S]*hidden[\s\S]*hidden/);
  for (const err of [driver, wrapped, new Error("outer", { cause: wrapped })]) {
    const [line = ""] = collectLines("info", (logger) => logger.error({ err }));
    assert.equal(line.includes("hidden"), false, line);
    assert.equal(line.includes("insert into"), false, line);
    assert.match(line, /duplicate key/);
    const fields = Object.keys(JSON.parse(line).err).filter((name) => name !== "cause");
    assert.deepEqual(fields, ["name", "message", "stack"]);
  }
});

it("causes of an error have an end", () => {
  const loop = new Error("loop");
  loop.cause = loop;
  const [line = ""] = collectLines("info", (logger) => logger.error({ err: loop }));
  assert.equal(line.split('"message":"loop"').length - 1, 5);
});

it("a line stays one line, whatever it says", () => {
  const [line = ""] = collectLines("info", (logger) => logger.info({ path: '/a\n{"level":"fatal"}' }, "b\nc"));
  assert.equal(line.trimEnd().includes("\n"), false);
  assert.equal(JSON.parse(line).path, '/a\n{"level":"fatal"}');
});

it("access lines are written in one piece, at the latest when the process ends, and other lines before them", () => {
  const script = `
    import { exitOnUncaughtError } from "./src/app/process.js";
    import { createLineWriter, createLogger, flushLog } from "./src/telemetry/logger.js";
    const logger = createLogger("info");
    exitOnUncaughtError({ logger, abandon: async () => {}, flushLog: () => flushLog(logger) });
    createLineWriter(logger, (msg) => JSON.stringify({ msg }) + "\\n").write("buffered");
    logger.error("at once");
    if (process.argv[1] === "throw") throw new Error("uncaught");
  `;
  for (const [end, last] of [
    ["return", []],
    ["throw", ["uncaught error: the process ends"]],
  ] as const) {
    const args = ["--import", "tsx", "--input-type=module", "-e", script, end];
    const { stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    const messages = [...stderr.matchAll(/"msg":"([^"]*)"/g)].map(([, message]) => message);
    assert.deepEqual(messages, ["at once", ...last, "buffered"], stderr);
  }
});
