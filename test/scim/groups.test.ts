import { groupsSuite } from "./groups-suite.js";

groupsSuite("the groups of directories");
