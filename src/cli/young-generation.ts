// How large V8 may make the heap for new objects. A start keeps most of what it allocates, for which V8 makes that heap 32 MB
// large within its first 100 ms, and it never makes it smaller again in a service that is idle.
import { setFlagsFromString } from "node:v8";

/** V8's default: each time, twice as large. */
const GROWTH_FACTOR = 2;

/** Keeps the heap for new objects as small as it is, until {@link releaseYoungGeneration}. */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets the heap for new objects grow again when much survives, as under load. */
export function releaseYoungGeneration(): void {
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`);
}
