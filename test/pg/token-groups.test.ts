// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { tokenGroupsSuite } from "../iam/people/token-groups-suite.js";

tokenGroupsSuite("the groups of tokens on PostgreSQL");
