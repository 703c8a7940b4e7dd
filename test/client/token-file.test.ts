import assert from "node:assert/strict";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { Code, staticToken, type TokenSource, tokenFile } from "../../src/client/index.js";
import { tempDir } from "../support/temp-dir.js";
import { failureOf, print } from "./failure.js";

describe("token files", () => {
  let path: string;
  let nowMs: number;
  let source: TokenSource;
  const token = async () => source.token();

  beforeEach(() => {
    path = join(tempDir(), "token");
    nowMs = 1_000_000;
    source = tokenFile(path, { clock: () => nowMs });
  });

  it("the token is what is between the white space", async () => {
    writeFileSync(path, " t1\n");
    assert.equal(await token(), "t1");
  });

  it("a change is seen within a second", async () => {
    writeFileSync(path, "t1");
    assert.equal(await token(), "t1");
    writeFileSync(`${path}.new`, "t2");
    renameSync(`${path}.new`, path);
    nowMs += 999;
    assert.equal(await token(), "t1");
    nowMs += 1;
    assert.equal(await token(), "t2");
  });

  it("a change is seen at once when the token is refused", async () => {
    writeFileSync(path, "t1");
    assert.equal(await token(), "t1");
    writeFileSync(path, "t2");
    assert.equal(await source.renew?.("t1"), "t2");
    assert.equal(await token(), "t2");
  });

  const broken: readonly { reason: string; spoil: () => void }[] = [
    { reason: "is gone", spoil: () => rmSync(path, { force: true }) },
    { reason: "is empty", spoil: () => writeFileSync(path, "") },
    { reason: "holds no token", spoil: () => writeFileSync(path, "se cret") },
  ];
  for (const { reason, spoil } of broken) {
    it(`while the file ${reason}, the last token stays in use`, async () => {
      writeFileSync(path, "t1");
      assert.equal(await token(), "t1");
      spoil();
      nowMs += 2_000;
      assert.equal(await token(), "t1");
    });

    it(`no token from a file that ${reason} from the start, until it appears`, async () => {
      spoil();
      const failure = await failureOf(token());
      assert.equal(failure.code, Code.Unauthenticated);
      assert.equal(failure.rawMessage, `no token in the file ${path}`);
      assert.doesNotMatch(print(failure), /se cret/);
      writeFileSync(path, "t1");
      assert.equal(await token(), "t1");
    });
  }
});

describe("static tokens", () => {
  for (const bad of ["", "se cret", "se\r\ncret", "secrét", "Bearer se=cret"]) {
    it(`${JSON.stringify(bad)} is none`, () => {
      assert.throws(() => staticToken(bad), { name: "TypeError", message: "the token is not a valid bearer token" });
    });
  }

  it("printing one shows no token", () => {
    assert.doesNotMatch(print(staticToken("se-cret")), /se-cret/);
  });
});
