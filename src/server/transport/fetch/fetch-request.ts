import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { ClientRequest } from '../../kernel/request/request-context.ts';

/** What framed a message on a connection that the program may have received it from. */
const OF_CONNECTION = new Set([
  'connection',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The fields of a request of the Fetch API as HTTP/1.1 has them: with Host, which is that of its URL. */
export function fieldsOf({ headers }: Request, { host }: URL): HeaderList {
  const list = new HeaderList(['host', host]);
  for (const [name, value] of headers) if (!OF_CONNECTION.has(name)) list.append(name, value);
  return list;
}

/** A request of the Fetch API. It has the version of HTTP whose rules it is checked by. */
export class FetchRequest implements ClientRequest {
  readonly httpVersion = '1.1';
  readonly httpVersionMajor = 1;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly headersDistinct: NodeJS.Dict<string[]>;

  constructor({ method }: Request, { pathname, search }: URL, { raw }: HeaderList) {
    this.method = method;
    this.url = pathname + search;
    // Without a prototype: a name may be `__proto__`. The Fetch API has joined fields of the same name.
    this.headers = Object.create(null);
    this.headersDistinct = Object.create(null);
    for (let at = 0; at < raw.length; at += 2) {
      const name = raw[at] ?? '';
      const value = raw[at + 1] ?? '';
      this.headers[name] = value;
      this.headersDistinct[name] = [value];
    }
  }
}

/** The body of a request of the Fetch API as a stream of Node.js, read on demand. */
export class FetchBody extends Readable {
  readonly #reader: ReadableStreamDefaultReader<unknown>;

  /** @throws TypeError if something else reads the body already */
  constructor(body: ReadableStream<unknown>) {
    super();
    this.#reader = body.getReader();
  }

  override _read(): void {
    this.#reader.read().then(
      ({ done, value }) => {
        if (done) this.push(null);
        // The program may have made the stream itself, of anything.
        else if (value instanceof Uint8Array) this.push(value);
        else this.destroy(new TypeError('a chunk of the body is not a Uint8Array'));
      },
      (error: unknown) => this.destroy(error instanceof Error ? error : new Error(String(error))),
    );
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#reader.cancel(error).then(
      () => done(error),
      () => done(error),
    );
  }
}
