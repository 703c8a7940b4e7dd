// HPACK (RFC 7541) as a fuzzer needs it: blocks that a library would not write, and the
// responses of the service read back.

/** A header field. */
export type Field = readonly [name: string, value: string];

/** How a field is written; `index` refers to the static or the dynamic table. */
export type Representation = "indexed" | "without-indexing" | "never-indexed";

const STATIC: readonly Field[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  ...["200", "204", "206", "304", "400", "404", "500"].map((status): Field => [":status", status]),
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ...[
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
  ].map((name): Field => [name, ""]),
];

const PATTERNS: Readonly<Record<Representation, readonly [bits: number, pattern: number]>> = {
  indexed: [6, 0x40],
  "without-indexing": [4, 0x00],
  "never-indexed": [4, 0x10],
};

/** An integer with a prefix of `bits` bits, under the high bits of `pattern` (RFC 7541, section 5.1). */
export function integer(value: number, bits: number, pattern = 0): Buffer {
  const limit = 2 ** bits - 1;
  if (value < limit) return Buffer.from([pattern | value]);
  const bytes = [pattern | limit];
  let rest = value - limit;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** A literal field with a literal name, no Huffman code. Text is written as Latin-1, whatever it holds. */
export function literal([name, value]: Field, as: Representation = "without-indexing"): Buffer {
  const [bits, pattern] = PATTERNS[as];
  const [nameBytes, valueBytes] = [Buffer.from(name, "latin1"), Buffer.from(value, "latin1")];
  return Buffer.concat([
    integer(0, bits, pattern),
    integer(nameBytes.length, 7),
    nameBytes,
    integer(valueBytes.length, 7),
    valueBytes,
  ]);
}

/** A field by its place in the tables alone. */
export function encodeIndexed(index: number): Buffer {
  return integer(index, 7, 0x80);
}

/** A dynamic table size update (RFC 7541, section 6.3). @param size in bytes */
export function tableSize(size: number): Buffer {
  return integer(size, 5, 0x20);
}

/** A block of fields that any reader takes. */
export function blockOf(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.map((field) => literal(field)));
}

// Lengths of the codes of RFC 7541, appendix B, for 0x20 to 0x7e. The code is canonical: the codes of a
// length follow each other in the order of their symbols, so lengths alone make it. Symbols that are
// absent here have longer codes and do not occur in responses.
const LENGTHS = [
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6,
  5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
];
// NUL is the one symbol below 0x20 whose code is short enough to shift those of its length.
const NUL_LENGTH = 13;

const HUFFMAN = huffmanCodes();

function huffmanCodes(): ReadonlyMap<number, string> {
  const symbols = [{ symbol: 0, length: NUL_LENGTH }];
  for (const [i, length] of LENGTHS.entries()) symbols.push({ symbol: 0x20 + i, length });
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  const codes = new Map<number, string>();
  let [code, last] = [-1, 0];
  for (const { symbol, length } of symbols) {
    code = (code + 1) * 2 ** (length - last);
    last = length;
    codes.set(2 ** length + code, String.fromCharCode(symbol));
  }
  return codes;
}

function huffman(bytes: Buffer): string {
  let text = "";
  // A leading one keeps codes of different lengths apart.
  let code = 1;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      const symbol = HUFFMAN.get(code);
      if (symbol !== undefined) {
        text += symbol;
        code = 1;
      }
    }
  }
  return text;
}

/** Reads header blocks of one direction of a session, in their order. */
export interface Decoder {
  /** The fields of a block. @throws RangeError when the block is broken */
  decode(block: Buffer): Field[];
}

/**
 * Creates a decoder.
 *
 * @param reads whether the value of a field of this name is of interest; the others come out empty,
 * since to undo their Huffman code is most of the work
 * @param maxBytes the size of the dynamic table to begin with
 */
export function createDecoder(reads: (name: string) => boolean = () => true, maxBytes = 4096): Decoder {
  const dynamic: Field[] = [];
  let limit = maxBytes;

  function evict(): void {
    let size = dynamic.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
    while (size > limit) {
      const gone = dynamic.pop();
      if (gone === undefined) return;
      size -= gone[0].length + gone[1].length + 32;
    }
  }

  function entry(index: number): Field {
    const field = index <= STATIC.length ? STATIC[index - 1] : dynamic[index - STATIC.length - 1];
    if (field === undefined) throw new RangeError(`no field ${index}`);
    return field;
  }

  return {
    decode(block) {
      const fields: Field[] = [];
      let at = 0;

      function number(bits: number): number {
        const limit = 2 ** bits - 1;
        let value = (block[at++] ?? 0) & limit;
        if (value < limit) return value;
        for (let factor = 1; ; factor *= 128) {
          const byte = block[at++];
          if (byte === undefined) throw new RangeError("the block ends within a number");
          value += (byte & 127) * factor;
          if (byte < 128) return value;
        }
      }

      function text(isRead: boolean): string {
        const isHuffman = ((block[at] ?? 0) & 0x80) !== 0;
        const length = number(7);
        const bytes = block.subarray(at, at + length);
        if (bytes.length < length) throw new RangeError("the block ends within a text");
        at += length;
        if (!isRead) return "";
        return isHuffman ? huffman(bytes) : bytes.toString("latin1");
      }

      while (at < block.length) {
        const first = block[at] ?? 0;
        if (first >= 0x80) {
          fields.push(entry(number(7)));
        } else if (first >= 0x20 && first < 0x40) {
          limit = number(5);
          evict();
        } else {
          const keep = first >= 0x40;
          const index = number(keep ? 6 : 4);
          const name = index === 0 ? text(true) : entry(index)[0];
          const field: Field = [name, text(reads(name))];
          if (keep) {
            dynamic.unshift(field);
            evict();
          }
          fields.push(field);
        }
      }
      return fields;
    },
  };
}
