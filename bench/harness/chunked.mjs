// Parses chunked bodies for generators on bare sockets: relays may cut bodies into chunks anywhere.

/** Reads one response after another from a connection. `onText` gets the body as it arrives, then `onEnd` is called. */
export class ChunkedReader {
  #rest = '';
  #left = -1;
  #isHead = true;
  #onText;
  #onEnd;

  constructor(onText, onEnd) {
    this.#onText = onText;
    this.#onEnd = onEnd;
  }

  push(text) {
    this.#rest += text;
    while (this.#step());
  }

  /** Returns whether there was enough data for one more step. */
  #step() {
    if (this.#isHead) return this.#head();
    if (this.#left === -1) return this.#size();
    const take = Math.min(this.#left, this.#rest.length);
    if (take > 0) this.#onText(this.#rest.slice(0, take));
    this.#rest = this.#rest.slice(take);
    this.#left -= take;
    if (this.#left > 0 || this.#rest.length < 2) return false;
    this.#rest = this.#rest.slice(2);
    this.#left = -1;
    return true;
  }

  #head() {
    const end = this.#rest.indexOf('\r\n\r\n');
    if (end === -1) return false;
    if (!/^HTTP\/1\.1 200 [\s\S]*\r\ntransfer-encoding: chunked/i.test(this.#rest.slice(0, end)))
      throw new Error(`not a stream: ${this.#rest.slice(0, 300)}`);
    this.#rest = this.#rest.slice(end + 4);
    this.#isHead = false;
    return true;
  }

  #size() {
    const end = this.#rest.indexOf('\r\n');
    if (end === -1) return false;
    const size = Number.parseInt(this.#rest, 16);
    if (size > 0) {
      this.#rest = this.#rest.slice(end + 2);
      this.#left = size;
      return true;
    }
    if (this.#rest.length < end + 4) return false;
    this.#rest = this.#rest.slice(end + 4);
    this.#isHead = true;
    this.#onEnd();
    return this.#rest !== '';
  }
}
