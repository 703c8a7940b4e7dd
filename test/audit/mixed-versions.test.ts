import { openLog } from "./log-kit.js";
import { testMixedVersions } from "./mixed-versions-suite.js";

testMixedVersions(() => openLog());
