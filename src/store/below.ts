// The part of a uid below one of its ancestors, as bytes: in the order of uids, in half the space of the text.
import { isBelow } from "../kernel/uidp.js";

/** Comes after every row below a scope: it has more bytes than the 63 segments of 8 bytes that are possible. */
export const AFTER_ALL = Buffer.alloc(512, 0xff);
const BEFORE_ALL = Buffer.alloc(0);

/** The segments of `uid` below `ancestor`, which is one of its ancestors: 8 bytes each. */
export function bytesBelow(uid: string, ancestor: string): Buffer {
  return Buffer.from(uid.slice(ancestor.length).replaceAll("/", ""), "hex");
}

/** The position of any uid among those below `top`: its own bytes, or bytes before or after those of all of them. */
export function positionBelow(uid: string, top: string): Buffer {
  if (isBelow(uid, top)) return bytesBelow(uid, top);
  return uid <= top ? BEFORE_ALL : AFTER_ALL;
}

/** The uid with these segments below `ancestor`; without segments, a text before all of them. */
export function uidBelow(below: Buffer, ancestor: string): string {
  return `${ancestor}/${below.toString("hex").replace(/.{16}(?=.)/g, "$&/")}`;
}
