// Converts the database of a directory and kills its own process as a step begins, or when some rows are copied. The
// arguments are the directory and the step, or the number of rows.
import { convertSqlite } from "../../src/store/migrate/conversion/sqlite.js";

const [directory = "", at = ""] = process.argv.slice(2);
const kill = () => process.kill(process.pid, "SIGKILL");
await convertSqlite({
  directory,
  onStep: (step) => step === at && kill(),
  onProgress: ({ name, done }) => `${name} ${done >= 100 ? 100 : 0}` === at && kill(),
});
