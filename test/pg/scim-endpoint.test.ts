// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import { endpointSuite } from "../scim/endpoint-suite.js";

endpointSuite("the endpoint of directories on PostgreSQL");
