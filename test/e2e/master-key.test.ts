import { join } from "node:path";
import { tempDir } from "../support/temp-dir.js";
import { masterKeySuite } from "./master-key-suite.js";

masterKeySuite("the master key of a server on SQLite", async () => {
  const data = join(tempDir(), "data");
  return { data, flags: [], keyFile: join(data, "master.key"), nodes: 1, rotate: [] };
});
