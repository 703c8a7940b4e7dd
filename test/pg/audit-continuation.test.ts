// What test/audit/continuation.test.ts tests, on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import { describe } from "node:test";
import { openPg } from "../../src/store/pg/open.js";
import { testContinuation } from "../audit/continuation-suite.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase, withClient } from "./databases.js";

describe("a sealer that starts, on PostgreSQL", () => {
  testContinuation(async () => {
    const url = await newDatabase();
    const database = {
      open: () => openPg({ url, poolSize: 2 }),
      attack: (...statements: readonly string[]) =>
        withClient(url, async (client) => {
          for (const statement of statements) await client.query(statement);
        }),
    };
    return { directory: tempDir(), database };
  });
});
