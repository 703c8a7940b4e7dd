// Deletes a role binding in a process of its own, while the service runs.
// Arguments: data directory, uid of the binding.
import { openSqlite } from "../src/store/sqlite/open.js";

const [directory = "", uid = ""] = process.argv.slice(2);
const store = openSqlite({ directory });
await store.write((tx) => tx.roleBindings.delete(uid));
await store.close();
