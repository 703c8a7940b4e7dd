// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { directoryPersonSuite } from "../iam/people/directory-person-suite.js";

directoryPersonSuite("people of a directory on PostgreSQL");
