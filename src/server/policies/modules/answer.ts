import { Readable } from 'node:stream';
import { messageOf } from '../../../core/errors.ts';
import { HeaderList, isSettableHeader } from '../../kernel/request/header-list.ts';
import type { Reply } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';

/**
 * The response that a function has returned, if any. Other values are mistakes that would pass a request which was meant to be refused.
 *
 * @throws TypeError for anything else, and for a response that cannot be sent
 */
export function answerIn(name: string, value: unknown): Response | undefined {
  if (name !== 'request') {
    if (value === false || isResponse(value))
      throw new TypeError(`it returned ${kindOf(value)}: to refuse, call \`deny\` of the context`);
    return undefined;
  }
  if (value === undefined) return undefined;
  if (!isResponse(value)) throw new TypeError(`it returned ${kindOf(value)}: expected nothing or a Response`);
  if (value.bodyUsed || value.body?.locked === true)
    throw new TypeError('it returned a Response whose body was read before');
  if (!(value.status >= 200 && value.status <= 599))
    throw new TypeError(`it returned a Response with the status ${value.status}`);
  return value;
}

/** Also one of another copy of the Fetch API, such as that of the package undici. */
const isResponse = (value: unknown): value is Response =>
  value instanceof Response || Object.prototype.toString.call(value) === '[object Response]';

const kindOf = (value: unknown): string =>
  value === null
    ? 'null'
    : typeof value === 'object'
      ? (value.constructor?.name ?? 'an object')
      : typeof value;

/** A response of somebody's code. Its body is sent as it arrives. */
export function replyFrom({ status, headers, body, url }: Response): Reply {
  const list = new HeaderList();
  for (const [name, value] of headers) {
    // What `fetch` has returned is decoded already.
    const isOfFetched = url !== '' && name === 'content-encoding';
    if (isSettableHeader(name) && !isOfFetched) list.append(name, value);
  }
  return { status, headers: list, body: body === null ? undefined : bodyFrom(body) };
}

function bodyFrom(stream: ReadableStream<unknown>): UpstreamBody {
  const chunks = Readable.from(bytesOf(stream), { objectMode: false });
  const body = new UpstreamBody({
    pause: () => void chunks.pause(),
    resume: () => void chunks.resume(),
    abort: () => void chunks.destroy(),
  });
  chunks
    .on('data', (chunk: Buffer) => body.push(chunk))
    .on('end', () => body.end())
    .on('error', (error) => body.fail(messageOf(error)));
  return body;
}

async function* bytesOf(stream: ReadableStream<unknown>): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a chunk of the body is not a Uint8Array');
    yield chunk;
  }
}
