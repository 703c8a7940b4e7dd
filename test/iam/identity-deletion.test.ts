import { identityDeletionSuite } from "./identity-deletion-suite.js";

identityDeletionSuite("the deletion of an identity with many bindings");
