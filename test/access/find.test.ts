// What Find finds on SQLite.
import { testFind } from "./find-suite.js";

testFind(async () => undefined);
