import { type Agent, type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';
import { readAll } from './upstream.ts';

export interface HttpReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Alternating names and values, as on the wire. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly text: string;
}

export interface SendOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array;
  /** Request target as written, instead of the URL's. */
  readonly target?: string;
  /** Address that the connection comes from. */
  readonly from?: string;
  readonly agent?: Agent;
  /** Called when the head of the response has come. */
  readonly onHead?: () => void;
}

/** One request with Node's own client, which sends any header and hides none of what comes back. */
export function send(url: string, options: SendOptions = {}): Promise<HttpReply> {
  const { method = 'GET', headers = {}, body, target, from, agent, onHead } = options;
  // As bytes, with a length: Node's client sends a text in one piece with the headers, all of it in UTF-8, and a
  // DELETE without a length as if it had no body.
  const bytes = body === undefined ? undefined : Buffer.from(body);
  const where: RequestOptions = {
    method,
    headers: {
      ...(bytes === undefined ? {} : { 'content-length': bytes.length }),
      ...(headers as Record<string, string>),
    },
    ...(target === undefined ? {} : { path: target }),
    ...(from === undefined ? {} : { localAddress: from }),
    ...(agent === undefined ? {} : { agent }),
  };
  return new Promise((resolve, reject) => {
    const call = request(url, where, (response) => {
      onHead?.();
      readAll(response).then((received) => {
        const { statusCode = 0, headers: fields, rawHeaders } = response;
        resolve({
          status: statusCode,
          headers: fields,
          rawHeaders,
          body: received,
          text: received.toString('utf8'),
        });
      }, reject);
    });
    call.on('error', reject);
    call.end(bytes);
  });
}

/** All values of a header, in the order of the wire. */
export function valuesOf({ rawHeaders }: Pick<HttpReply, 'rawHeaders'>, name: string): string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);
}
