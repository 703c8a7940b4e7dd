// Opens the store of a directory, as a server does unless told `shared`, says so, and stays.
import { writeSync } from "node:fs";
import { openSqlite } from "../../src/store/open-sqlite.js";

const [directory = "", mode = "exclusive"] = process.argv.slice(2);
const store = openSqlite({ directory, exclusive: mode === "exclusive" });
await store.write((tx) => tx.settings.put("held", "yes"));
writeSync(1, "held\n");
setInterval(() => {}, 1_000);
