import { Agent, type IncomingHttpHeaders, request } from 'node:http';

/** What the gateway answered, read to its end. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Whether the body ended as HTTP says; otherwise the connection was cut. */
  readonly isComplete: boolean;
}

/** How long a call may take, in ms. The limits of the gateways under test are far shorter. */
const LIMIT = 20_000;

const agent = new Agent({ keepAlive: true, maxSockets: 256 });

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** Gets the text of a body while it arrives. */
  readonly onText?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** One request over a connection that is kept. */
export function ask(
  url: string,
  { method = 'POST', headers = {}, body, onText, signal }: Asked,
): Promise<Answered> {
  const bytes = body === undefined ? undefined : Buffer.from(body as string);
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method,
      agent,
      headers: { ...headers, ...(bytes === undefined ? {} : { 'content-length': bytes.length }) },
      ...(signal === undefined ? {} : { signal }),
    });
    // A call that is left alone goes on in the gateway, and is taken for the fault of the trials that follow.
    const limit = setTimeout(() => call.destroy(new Error(`no answer within ${LIMIT} ms`)), LIMIT);
    call.on('close', () => clearTimeout(limit));
    call.on('error', reject);
    call.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        onText?.(part);
      });
      // A cut connection has an error and then closes.
      response.on('error', () => undefined);
      response.on('close', () => {
        const { statusCode: status = 0, complete: isComplete, headers: got } = response;
        resolve({ status, headers: got, text, isComplete });
      });
    });
    call.end(bytes);
  });
}
