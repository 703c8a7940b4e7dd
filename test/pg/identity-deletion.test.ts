// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { identityDeletionSuite } from "../iam/identity-deletion-suite.js";

identityDeletionSuite("the deletion of an identity with many bindings on PostgreSQL");
