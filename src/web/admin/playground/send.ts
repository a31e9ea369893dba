import { jsonIn, membersOf, parseJson, textIn } from '../../../core/foreign.ts';
import { ApiError } from '../../shared/api.ts';

/** A request to one of the gateway's own ports. */
export interface GatewayRequest {
  readonly port: number;
  readonly method?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The gateway's response; the body is streamed. */
export interface GatewayAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: ReadableStream<string>;
}

/**
 * Sends the request through the admin server, because a page may not send requests to other ports. Throws `ApiError`.
 */
export async function sendToGateway(request: GatewayRequest, signal: AbortSignal): Promise<GatewayAnswer> {
  const response = await fetch('/api/playground/send', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request),
    signal,
  }).catch((error: unknown) => {
    if (signal.aborted) throw error;
    throw new ApiError(`${location.origin} does not answer. Is it still running?`);
  });
  const status = response.headers.get('x-gateway-status');
  if (status === null || response.body === null)
    throw new ApiError(await problemOf(response), response.status);
  const sent = membersOf(parseJson(atob(response.headers.get('x-gateway-headers') ?? 'e30=')));
  const headers = Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, textIn(value)]));
  return { status: Number(status), headers, body: response.body.pipeThrough(new TextDecoderStream()) };
}

async function problemOf(response: Response): Promise<string> {
  const text = await response.text();
  const { message } = membersOf(membersOf(jsonIn(text))['error']);
  if (typeof message === 'string') return message;
  return text.trim() || `the admin server answered ${response.status}`;
}

/** Reads the whole body; characters beyond `most` are dropped. */
export async function readText(body: ReadableStream<string>, most: number): Promise<string> {
  let text = '';
  for await (const part of parts(body)) if (text.length < most) text += part;
  return text.slice(0, most);
}

/** Not every browser supports iteration over streams. */
export async function* parts(body: ReadableStream<string>): AsyncGenerator<string> {
  const reader = body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
}
