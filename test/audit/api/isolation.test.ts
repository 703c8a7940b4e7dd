import { isolationSuite } from "./isolation-suite.js";

isolationSuite();
