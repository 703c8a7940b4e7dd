import assert from "node:assert/strict";
import { it } from "node:test";
import { createLogger } from "../../src/telemetry/logger.js";

function logged(level: Parameters<typeof createLogger>[0], write: (logger: ReturnType<typeof createLogger>) => void) {
  const lines: string[] = [];
  write(createLogger(level, { write: (line) => lines.push(line) }));
  return lines;
}

it("credentials are never written, however deep", () => {
  const [line = ""] = logged("info", (logger) =>
    logger.info({
      authorization: "hidden",
      headers: { Authorization: "hidden", "x-auth-token": "hidden", cookie: "hidden" },
      deep: [{ client_secret: { value: "hidden" }, refreshToken: "hidden", tokenId: "shown" }],
      err: Object.assign(new Error("shown"), { token: "hidden" }),
    }),
  );
  assert.equal(line.includes("hidden"), false, line);
  const { deep, err, level } = JSON.parse(line);
  assert.equal(level, "info");
  assert.equal(deep[0].tokenId, "shown");
  assert.equal(err.message, "shown");
  assert.match(err.stack, /logger\.test/);
});

it("what refers to itself has an end", () => {
  const loop: Record<string, unknown> = { name: "a" };
  loop.self = loop;
  assert.equal(logged("info", (logger) => logger.info({ loop })).length, 1);
});

it("only lines of the level and above are written", () => {
  const lines = logged("warn", (logger) => {
    logger.info("no");
    logger.warn("yes");
  });
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    ["yes"],
  );
});
