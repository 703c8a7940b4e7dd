// The bodies of the audit log on PostgreSQL, and calls that leave no row. Needs TEST_ARBOR_DATABASE_URL.
import { bodiesSuite } from "../audit/bodies-suite.js";
import { unchangedSuite } from "../audit/unchanged-suite.js";

bodiesSuite("PostgreSQL");
unchangedSuite("PostgreSQL");
