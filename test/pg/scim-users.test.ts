// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { scimUsersSuite } from "../iam/scim-users-suite.js";

scimUsersSuite("people whom directories have sent on PostgreSQL");
