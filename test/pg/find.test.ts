// What Find finds on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import { testFind } from "../access/find-suite.js";
import { newDatabase } from "./databases.js";

testFind(newDatabase);
