import { ScalarType } from "@bufbuild/protobuf";
import {
  bytesWritten,
  writeDouble,
  writeFixed32,
  writeFixed64,
  writeFloat,
  writeLongVarint,
  writeRaw,
  writeText,
  writeVarint,
} from "./frame-scratch.js";

/** Writes a value before all that is written. */
export type Write = (value: unknown) => void;

const VARINT = 0;
const BIT64 = 1;
const LENGTH_DELIMITED = 2;
const BIT32 = 5;

/** The wire type that comes with the tag of a scalar (protobuf encoding, "Message Structure"). */
export function wireTypeOf(type: ScalarType): number {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return LENGTH_DELIMITED;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return BIT64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return BIT32;
    default:
      return VARINT;
  }
}

/** Makes the writer of a scalar without its tag; texts and bytes come with their length. */
export function scalarWriter(type: ScalarType): Write {
  switch (type) {
    case ScalarType.STRING:
      return (value) => {
        const before = bytesWritten();
        writeText(value as string);
        writeVarint(bytesWritten() - before);
      };
    case ScalarType.BYTES:
      return (value) => {
        writeRaw(value as Uint8Array);
        writeVarint((value as Uint8Array).length);
      };
    case ScalarType.BOOL:
      return (value) => writeVarint(value ? 1 : 0);
    case ScalarType.DOUBLE:
      return (value) => writeDouble(value as number);
    case ScalarType.FLOAT:
      return (value) => writeFloat(value as number);
    case ScalarType.UINT32:
      return (value) => writeVarint(unsigned(value));
    case ScalarType.INT32:
      return (value) => (signed(value) < 0 ? writeLongVarint(BigInt(value as number)) : writeVarint(value as number));
    case ScalarType.SINT32:
      return (value) => writeVarint(((signed(value) << 1) ^ (signed(value) >> 31)) >>> 0);
    case ScalarType.FIXED32:
      return (value) => writeFixed32(unsigned(value));
    case ScalarType.SFIXED32:
      return (value) => writeFixed32(signed(value));
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return (value) => writeFixed64(long(value));
    case ScalarType.SINT64:
      return (value) => writeLongVarint((long(value) << 1n) ^ (long(value) >> 63n));
    default:
      return writeLong;
  }
}

// Seconds of timestamps and counts, which is most of them, need no arithmetic on big integers.
function writeLong(value: unknown): void {
  const near = Number(value);
  if (near >>> 0 === near) writeVarint(near);
  else writeLongVarint(long(value));
}

function signed(value: unknown): number {
  if (typeof value !== "number" || (value | 0) !== value) throw new RangeError(`${value} is no integer of 32 bits`);
  return value;
}

function unsigned(value: unknown): number {
  if (typeof value !== "number" || value >>> 0 !== value) throw new RangeError(`${value} is no natural of 32 bits`);
  return value;
}

// Longs may be kept as texts.
function long(value: unknown): bigint {
  return typeof value === "bigint" ? value : BigInt(value as string);
}
