// Limits the heap for new objects during a start. Most objects of a start survive, so V8 would grow that heap to 32 MB
// within 100 ms, and would not shrink it again while the service is idle.
import { setFlagsFromString } from "node:v8";

/** The default of V8. */
const GROWTH_FACTOR = 2;

/** Stops the growth of the heap for new objects until {@link releaseYoungGeneration}. */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Lets the heap for new objects grow again, as it must under load. */
export function releaseYoungGeneration(): void {
  setFlagsFromString(`--semi-space-growth-factor=${GROWTH_FACTOR}`);
}
