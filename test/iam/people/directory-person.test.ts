import { directoryPersonSuite } from "./directory-person-suite.js";

directoryPersonSuite("people of a directory");
