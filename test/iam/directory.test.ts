import { directorySuite } from "./directory-suite.js";

directorySuite("role bindings that a directory manages");
