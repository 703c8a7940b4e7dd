// The audit log over the API on PostgreSQL. Needs ARBOR_TEST_DATABASE_URL, which makes services of tests use it.
import { eventsSuite } from "../audit/api/events-suite.js";
import { isolationSuite } from "../audit/api/isolation-suite.js";

eventsSuite();
isolationSuite();
