// Writes into package-lock.json what npm leaves out of it about the two SQLite
// drivers. To be run after each `npm install` that changes the file.
import { readFileSync, writeFileSync } from "node:fs";

const file = "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8"));
// Its code is compiled already. npm 10 and 11 read `gypfile` here instead of in the package, and
// without it run node-gyp, which needs Python, make and headers to find that nothing is to be done.
lock.packages["node_modules/better-sqlite3"].gypfile = false;
// It declares newer versions of Node as well; there it is not used, and npm would compile it for nothing.
lock.packages["node_modules/better-sqlite3-node20"].engines = { node: "20.x" };
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
