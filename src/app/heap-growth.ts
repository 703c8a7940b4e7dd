// How much garbage the heap keeps before it is collected. V8 lets a heap of 100 MB grow to 400 and more, which
// callers who keep many requests waiting can bring about; what buffers are allowed to hold says little then.
import { setFlagsFromString } from "node:v8";

/** How much the heap may grow after a full collection before the next one begins, in percent of what was left. */
const GROWTH_PERCENT = 100;

/**
 * Makes the collector of this process begin its full collections earlier than V8 would by itself.
 *
 * The flag is read anew with every collection, so it may be set while the process runs. Unlike
 * `--max-old-space-size` it ends nothing: a heap that needs more gets more.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
