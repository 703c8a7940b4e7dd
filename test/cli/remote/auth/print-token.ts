// Prints the token of the stored login at a service, as the commands get it.
import { storedToken } from "../../../../src/cli/remote/auth/credentials.js";

const [api = ""] = process.argv.slice(2);
const source = await storedToken(api);
process.stdout.write((await source?.token()) ?? "none");
