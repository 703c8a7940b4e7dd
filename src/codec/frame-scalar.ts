import { ScalarType } from "@bufbuild/protobuf";
import {
  countWrittenBytes,
  writeDouble,
  writeFixed32,
  writeFixed64,
  writeFloat,
  writeLongVarint,
  writeRaw,
  writeText,
  writeVarint,
} from "./frame-scratch.js";
import {
  checkBoolean,
  checkBytes,
  checkDouble,
  checkFloat,
  checkInt32,
  checkLong,
  checkUint32,
  rejectValue,
} from "./scalar-check.js";
import { isSignedLong } from "./value-rules.js";

/** Writes a value before the bytes that were written last. */
export type Write = (value: unknown) => void;

const VARINT = 0;
const BIT64 = 1;
const LENGTH_DELIMITED = 2;
const BIT32 = 5;

/** The wire type of a scalar (protobuf encoding, "Message Structure"). */
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

/** Creates the writer of a scalar without its tag; strings and bytes are preceded by their length. */
export function createScalarWriter(type: ScalarType): Write {
  switch (type) {
    case ScalarType.STRING:
      return (value) => {
        if (typeof value !== "string") rejectValue(value, "string");
        const before = countWrittenBytes();
        writeText(value);
        writeVarint(countWrittenBytes() - before);
      };
    case ScalarType.BYTES:
      return (value) => {
        const bytes = checkBytes(value);
        writeRaw(bytes);
        writeVarint(bytes.length);
      };
    case ScalarType.BOOL:
      return (value) => writeVarint(checkBoolean(value) ? 1 : 0);
    case ScalarType.DOUBLE:
      return (value) => writeDouble(checkDouble(value));
    case ScalarType.FLOAT:
      return (value) => writeFloat(checkFloat(value));
    case ScalarType.UINT32:
      return (value) => writeVarint(checkUint32(value));
    case ScalarType.INT32:
      return (value) =>
        checkInt32(value) < 0 ? writeLongVarint(BigInt(value as number)) : writeVarint(value as number);
    case ScalarType.SINT32:
      return (value) => writeVarint(((checkInt32(value) << 1) ^ (checkInt32(value) >> 31)) >>> 0);
    case ScalarType.FIXED32:
      return (value) => writeFixed32(checkUint32(value));
    case ScalarType.SFIXED32:
      return (value) => writeFixed32(checkInt32(value));
    case ScalarType.FIXED64:
      return (value) => writeFixed64(checkLong(value, false));
    case ScalarType.SFIXED64:
      return (value) => writeFixed64(checkLong(value, true));
    case ScalarType.SINT64:
      return (value) => {
        const long = checkLong(value, true);
        writeLongVarint((long << 1n) ^ (long >> 63n));
      };
    default: {
      const isSigned = isSignedLong(type);
      return (value) => writeLong(value, isSigned);
    }
  }
}

// Most 64-bit integers are seconds of timestamps and counts, which need no arithmetic on big integers.
function writeLong(value: unknown, isSigned: boolean): void {
  const near = typeof value === "bigint" ? Number(value) : -1;
  if (near >>> 0 === near) writeVarint(near);
  else writeLongVarint(checkLong(value, isSigned));
}
