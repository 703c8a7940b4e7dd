import { tokenGroupsSuite } from "./token-groups-suite.js";

tokenGroupsSuite("the groups of tokens");
