// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { directorySuite } from "../iam/directory-suite.js";

directorySuite("role bindings that a directory manages on PostgreSQL");
