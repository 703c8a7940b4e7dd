#!/usr/bin/env node
// Entry of the `arbor` command.
import { run } from "./cli/program.js";

process.exitCode = await run(process.argv.slice(2));
