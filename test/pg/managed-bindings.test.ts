// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { managedBindingsSuite } from "../iam/directories/managed-bindings-suite.js";

managedBindingsSuite("bindings that directories manage on PostgreSQL");
