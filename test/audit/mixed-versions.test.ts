import { openLog } from "./log-kit.js";
import { mixedVersionsSuite } from "./mixed-versions-suite.js";

mixedVersionsSuite(() => openLog());
