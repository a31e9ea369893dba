import { Readable } from 'node:stream';
import { messageOf } from '../../../core/errors.ts';
import { HeaderList, isSettableHeader } from '../../kernel/request/header-list.ts';
import type { Reply } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';

/** A response of somebody's code. Its body is sent as it arrives. */
export function replyFrom({ status, headers, body }: Response): Reply {
  const list = new HeaderList();
  for (const [name, value] of headers) if (isSettableHeader(name)) list.append(name, value);
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
    if (!(chunk instanceof Uint8Array)) throw new TypeError('a chunk of the body is no Uint8Array');
    yield chunk;
  }
}
