// Writes lines to standard error or standard output without ever waiting for it. Its reader may stall, and its disk may
// be full: neither may stop a service that could handle calls.
import sonicBoom from "sonic-boom";

/** How many bytes wait at most; lines beyond them are lost. */
const MAX_BYTES = 1024 * 1024;
/** How long after an error the rest is written again, unless another line comes before. */
const RETRY_MS = 1_000;
/** How long {@link LineStream.flush} waits at most. */
const FLUSH_MS = 500;

const NEWLINE = 10;

export interface LineStream {
  /** Writes whole lines, each of which ends in a newline, soon and in this order. */
  write(lines: Uint8Array): void;
  /** Resolves to true when everything is written, or to false after half a second. */
  flush(): Promise<boolean>;
  lostLines(): number;
}

/**
 * Opens a stream of lines.
 *
 * @param fd 1 for standard output, 2 for standard error
 * @param onRecovered called when everything that waited was written, after `lost` lines were not
 */
export function openLineStream(fd: 1 | 2, onRecovered: (lost: number) => void = () => {}): LineStream {
  // Asynchronous writes: a synchronous one to a pipe that nobody reads never returns. A thread of libuv's pool may wait
  // in it, but not the event loop. As bytes, because the stream would measure and encode texts again.
  const stream = new sonicBoom.SonicBoom({ fd, sync: false, maxLength: MAX_BYTES, contentMode: "buffer" });
  const waiters: ((isWritten: boolean) => void)[] = [];
  let unwritten = 0;
  let lost = 0;
  let lostSinceRecovery = 0;
  let isRetrying = false;

  // The type of the stream knows texts alone.
  function write(lines: Uint8Array): void {
    unwritten += lines.length;
    stream.write(lines as unknown as string);
  }

  stream.on("drop", (lines: Uint8Array) => {
    unwritten -= lines.length;
    const count = countLines(lines);
    lost += count;
    lostSinceRecovery += count;
  });
  stream.on("write", (bytes: number) => {
    unwritten -= bytes;
  });
  // The stream keeps what it could not write, and begins with it at the next write.
  stream.on("error", () => {
    if (isRetrying) return;
    isRetrying = true;
    setTimeout(() => {
      isRetrying = false;
      write(NOTHING);
    }, RETRY_MS).unref();
  });
  stream.on("drain", () => {
    const count = lostSinceRecovery;
    lostSinceRecovery = 0;
    if (count > 0) onRecovered(count);
    if (unwritten === 0) for (const resolve of waiters.splice(0)) resolve(true);
  });

  return {
    write,
    flush() {
      if (unwritten === 0) return Promise.resolve(true);
      return new Promise((resolve) => {
        waiters.push(resolve);
        setTimeout(resolve, FLUSH_MS, false);
      });
    },
    lostLines: () => lost,
  };
}

const NOTHING = Buffer.alloc(0);

/** The lines that another process writes to a pipe. */
export interface LineRelay {
  write(chunk: Buffer): void;
  /** Passes the begin of a line on, whose end does not come. */
  end(): void;
}

/**
 * Creates a relay. Several processes that write to one pipe tear each other's lines, as soon as its reader is slow and they
 * write more than 4 KiB at once. So one of them writes for all.
 */
export function createLineRelay(lines: Pick<LineStream, "write">): LineRelay {
  let begin: Buffer = NOTHING;
  function end(): void {
    if (begin.length > 0) lines.write(Buffer.concat([begin, Buffer.of(NEWLINE)]));
    begin = NOTHING;
  }
  return {
    write(chunk) {
      const text = begin.length === 0 ? chunk : Buffer.concat([begin, chunk]);
      const length = text.lastIndexOf(NEWLINE) + 1;
      if (length > 0) lines.write(text.subarray(0, length));
      begin = text.subarray(length);
      if (begin.length >= MAX_BYTES) end();
    },
    end,
  };
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte === NEWLINE) count++;
  return count;
}
