// Loaded before the service by the control of the host faults: the files of its database always seem to be those that it
// opened.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const { statSync } = fs;
const first = new Map();
fs.statSync = (path, options) => {
  if (options?.throwIfNoEntry !== false || !/arbor\.db(-wal|-shm)?$/.test(String(path))) return statSync(path, options);
  const stat = first.get(path) ?? statSync(path, options);
  if (stat !== undefined) first.set(path, stat);
  return stat;
};
syncBuiltinESMExports();
