import { describe } from "node:test";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { memoryDir } from "../support/temp-dir.js";
import { testContinuation } from "./continuation-suite.js";
import { attack } from "./log-kit.js";

describe("a sealer that starts", () => {
  testContinuation(async () => {
    const directory = memoryDir();
    const database = {
      open: async () => openSqlite({ directory }),
      attack: async (...statements: readonly string[]) => attack(directory, ...statements),
    };
    return { directory, database };
  });
});
