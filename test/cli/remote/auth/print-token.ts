// Prints the token of the stored login at a service, as the commands get it.
import { findStoredToken } from "../../../../src/cli/remote/auth/credentials.js";

const [api = ""] = process.argv.slice(2);
const source = await findStoredToken(api);
process.stdout.write((await source?.token()) ?? "none");
