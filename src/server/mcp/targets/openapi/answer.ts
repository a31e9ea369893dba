import { STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import { isJson } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { exceedsStructure } from '../../../kernel/json/json-text.ts';
import { chunksOf, header } from '../http/http-body.ts';

/** Content types that are text, besides `text/…`. */
const TEXT =
  /^(?:text\/|application\/(?:[\w.+-]+\+)?(?:json|xml|yaml)\b|application\/(?:x-ndjson|x-yaml|javascript|x-www-form-urlencoded|graphql)\b)/i;

/**
 * The tool result of a response as JSON text (MCP 2025-11-25, "Tool Result"): its text, and for a JSON object the object
 * itself. A failed status and a response that cannot be shown become results with `isError`.
 */
export async function toolResultOf(response: Dispatcher.ResponseData): Promise<string> {
  const { statusCode } = response;
  const status = `HTTP ${statusCode} ${STATUS_CODES[statusCode] ?? ''}`.trim();
  const type = header(response, 'content-type');
  const encoding = header(response, 'content-encoding');
  const isText = type === undefined || TEXT.test(type);
  if (!isText || (encoding !== undefined && encoding.toLowerCase() !== 'identity')) {
    const shown = isText ? `encoded with ${encoding}` : `of type ${type}`;
    await response.body.dump();
    return failedResult(
      `${status}: the response is ${shown.slice(0, 100)}, which cannot be returned as text`,
    );
  }
  const text = await readBody(response, type);
  if (statusCode < 200 || statusCode > 299) return failedResult(failure(response, status, text));
  if (text === undefined)
    return failedResult(`${status}: the response is larger than ${LIMITS.openApiResponseBytes} bytes`);
  const content = `[{"type":"text","text":${JSON.stringify(text === '' ? status : text)}}]`;
  return isJsonObject(text) ? `{"content":${content},"structuredContent":${text}}` : `{"content":${content}}`;
}

/** A tool result that reports a failure to the model. */
export function failedResult(text: string): string {
  return JSON.stringify({ content: [{ type: 'text', text }], isError: true });
}

function failure(response: Dispatcher.ResponseData, status: string, text = ''): string {
  const { statusCode } = response;
  const isRedirect = statusCode >= 300 && statusCode <= 399;
  const body = isRedirect
    ? `redirects are not followed (location: ${header(response, 'location') ?? 'none'})`
    : text;
  const shown =
    body.length > LIMITS.openApiErrorLength ? `${body.slice(0, LIMITS.openApiErrorLength)}…` : body;
  return shown === '' ? status : `${status}: ${shown}`;
}

/** The body as text; undefined if it is larger than `LIMITS.openApiResponseBytes`. */
async function readBody(response: Dispatcher.ResponseData, type = ''): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunksOf(response.body)) {
    chunks.push(chunk);
    size += chunk.length;
    if (size <= LIMITS.openApiResponseBytes) continue;
    response.body.destroy();
    return undefined;
  }
  return decoderOf(type).decode(Buffer.concat(chunks, size));
}

function decoderOf(type: string): TextDecoder {
  try {
    return new TextDecoder(/;\s*charset="?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8');
  } catch {
    return new TextDecoder('utf-8');
  }
}

/** Whether the text is one JSON object that clients can read: a hostile one may nest very deeply. */
function isJsonObject(text: string): boolean {
  return (
    /^\s*\{/.test(text) && !exceedsStructure(text, LIMITS.jsonDepth, Number.POSITIVE_INFINITY) && isJson(text)
  );
}
