// Changes of bytes that know nothing of what the bytes mean.
import type { Random } from "../../support/openapi/random.js";

const NOTABLE = [0x00, 0x01, 0x09, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x3a, 0x3b, 0x5c, 0x7b, 0x7d, 0x7f, 0x80, 0xff];
const MOST = 4;

/** Changes, adds, removes or repeats bytes in one to four places. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  let changed: Buffer = Buffer.from(bytes);
  for (let times = 1 + random.int(MOST); times > 0; times--) {
    const at = random.int(changed.length + 1);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at)];
    const length = 1 + random.int(random.pick([1, 4, 30]));
    switch (random.int(6)) {
      case 0:
        if (at < changed.length) changed[at] = (changed[at] ?? 0) ^ (1 << random.int(8));
        break;
      case 1:
        if (at < changed.length) changed[at] = random.pick(NOTABLE);
        break;
      case 2:
        changed = Buffer.concat([before, Buffer.from([random.pick(NOTABLE)]), after]);
        break;
      case 3:
        changed = Buffer.concat([before, after.subarray(length)]);
        break;
      case 4:
        changed = Buffer.concat([before, after.subarray(0, length), after]);
        break;
      default:
        changed = Buffer.from(before.length === 0 ? after : before);
    }
  }
  return changed;
}

/** Random bytes. */
export function randomBytes(random: Random, most: number): Buffer {
  const bytes = Buffer.allocUnsafe(random.int(most + 1));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.int(256);
  return bytes;
}
