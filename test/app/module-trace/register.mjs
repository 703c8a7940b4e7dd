// Records the modules that a process imports, in the file that MODULE_TRACE names.
import { register } from "node:module";

register("./hook.mjs", import.meta.url, { data: process.env.MODULE_TRACE });
