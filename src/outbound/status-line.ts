// Statuses of responses whose header fields never end or cannot be read: the status is known as soon as its line has arrived.

const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})[ \r\n]/;

/** Finds the status in the text of a response (RFC 9112, section 4), behind interim responses. */
export class StatusReader {
  /** Whether anything has arrived. */
  hasRead = false;
  /** The status of the response, once its line has arrived. */
  status: number | undefined;
  #text = "";

  /** Reads what has arrived, and returns the status once it is known. */
  read(chunk: Buffer): number | undefined {
    this.hasRead = true;
    this.#text += chunk.toString("latin1");
    while (this.status === undefined) {
      const [, digits] = STATUS_LINE.exec(this.#text) ?? [];
      if (digits === undefined) return undefined;
      if (Number(digits) >= 200) this.status = Number(digits);
      const end = this.#text.indexOf("\r\n\r\n");
      if (end === -1) break;
      this.#text = this.#text.slice(end + 4);
    }
    return this.status;
  }
}
