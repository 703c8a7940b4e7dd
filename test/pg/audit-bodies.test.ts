// The bodies of the audit log on PostgreSQL. Needs TEST_ARBOR_DATABASE_URL.
import { bodiesSuite } from "../audit/bodies-suite.js";

bodiesSuite("PostgreSQL");
