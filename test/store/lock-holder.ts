// Opens the store of a directory, exclusively unless the second argument is `shared`, reports it and waits.
import { writeSync } from "node:fs";
import { openSqlite } from "../../src/store/sqlite/open.js";

const [directory = "", mode = "exclusive"] = process.argv.slice(2);
const store = openSqlite({ directory, exclusive: mode === "exclusive" });
await store.write((tx) => tx.settings.put("opened", "yes"));
writeSync(1, "opened\n");
setInterval(() => {}, 1_000);
