// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { groupsSuite } from "../scim/groups-suite.js";

groupsSuite("the groups of directories on PostgreSQL");
