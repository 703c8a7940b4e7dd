// Is killed when all is written and only the new name is missing.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { changeCredentials, setLogin } from "../../../../src/cli/remote/auth/credentials-file.js";

const [file = "", api = ""] = process.argv.slice(2);
fs.promises.rename = async () => {
  process.kill(process.pid, "SIGKILL");
  await new Promise(() => {});
};
syncBuiltinESMExports();
await changeCredentials(file, (now) => setLogin(now, api, { token: "a.b.c" }));
