// Adds to package-lock.json what npm does not write about the two SQLite drivers.
// Run it after each `npm install` that changes the file.
import { readFileSync, writeFileSync } from "node:fs";

const file = "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8"));
// The package has compiled code. npm 10 and 11 read `gypfile` here and not in the package. Without it
// they run node-gyp, which needs Python, make and headers although there is nothing to build.
lock.packages["node_modules/better-sqlite3"].gypfile = false;
// It also declares newer versions of Node, where npm would compile it although it is not used.
lock.packages["node_modules/better-sqlite3-node20"].engines = { node: "20.x" };
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
