// Commands that are given a directory below /proc, where none can be created: each ends with the reason.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { tempDir } from "../support/temp-dir.js";
import { arbor } from "./process.js";

const NOWHERE = "/proc/arbor/new";
const skip = !existsSync("/proc/self/ns") && "there is no /proc";

describe("a directory below /proc", { skip }, () => {
  const data = join(tempDir(), "data");
  const backup = join(tempDir(), "backup");
  const out = join(tempDir(), "registry");
  before(async () => {
    assert.equal((await arbor("bootstrap", "--org", "acme.example", "--data", data)).code, 0);
    assert.equal((await arbor("backup", backup, "--with-master-key", "--data", data)).code, 0);
  });

  for (const { name, at, args } of [
    { name: "bootstrap", at: NOWHERE, args: ["bootstrap", "--org", "acme.example", "--data", NOWHERE] },
    { name: "backup", at: NOWHERE, args: ["backup", NOWHERE, "--data", data] },
    { name: "restore", at: NOWHERE, args: ["restore", backup, "--data", NOWHERE] },
    { name: "migrate", at: NOWHERE, args: ["migrate", "--expand", "--data", NOWHERE] },
    {
      name: "registry configure",
      at: NOWHERE,
      args: ["registry", "configure", "--out", NOWHERE, "--base-url", "http://127.0.0.1:8080", "--data", data],
    },
    { name: "serve", at: NOWHERE, args: ["serve", "--data", NOWHERE, "--listen", "127.0.0.1:0"] },
    { name: "demo", at: NOWHERE, args: ["demo", "--data", NOWHERE] },
  ] as const) {
    it(`ends ${name} with the reason`, async () => {
      const { code, stdout, stderr } = await arbor(...args);
      assert.ok(code !== null && code > 0 && code < 70, `${code} ${stdout}${stderr}`);
      assert.match(stderr, /no directory can be created|permission denied|EACCES|EPERM/, at);
    });
  }

  it("control: elsewhere these commands succeed", async () => {
    const directory = join(tempDir(), "not", "there");
    const more = [
      await arbor("bootstrap", "--org", "acme.example", "--data", join(directory, "data")),
      await arbor("backup", join(directory, "backup"), "--data", data),
      await arbor("registry", "configure", "--out", out, "--base-url", "http://127.0.0.1:8080", "--data", data),
    ];
    assert.deepEqual(
      more.map(({ code }) => code),
      [0, 0, 0],
      more.map(({ stderr }) => stderr).join(),
    );
  });
});
