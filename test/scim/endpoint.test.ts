import { endpointSuite } from "./endpoint-suite.js";

endpointSuite("the endpoint of directories");
