import { keyNodesSuite } from "./nodes-suite.js";

keyNodesSuite(async () => undefined);
