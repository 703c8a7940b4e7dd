import { eventsSuite } from "./events-suite.js";

eventsSuite();
