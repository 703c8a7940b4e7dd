// The audit log over the API on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL, which makes services of tests use it.
import { eventsSuite } from "../audit/api/events-suite.js";
import { isolationSuite } from "../audit/api/isolation-suite.js";

eventsSuite();
isolationSuite();
