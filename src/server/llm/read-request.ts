import { AppError } from '../../core/errors.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { LlmBody } from './body.ts';
import { type CallBody, OpaqueBody } from './call-body.ts';
import { decoded, type Endpoint } from './endpoints.ts';
import { llmError } from './errors.ts';
import { FormBody } from './form-body.ts';
import { TEXT_FIELDS } from './guardrails/request-texts.ts';

/** Reads the body of a call. Throws an `AppError` with an OpenAI-style body for one that the call does not take. */
export async function readRequest(ctx: RequestContext, endpoint: Endpoint, limit: number): Promise<CallBody> {
  const bytes = await readBytes(ctx, limit);
  const contentType = ctx.headers.get('content-type') ?? '';
  if (endpoint.takesForms && /^multipart\/form-data\b/i.test(contentType))
    return FormBody.parse(bytes, contentType);
  if (endpoint.isPassthrough && !isJson(bytes, contentType)) return new OpaqueBody(bytes, contentType);
  const body = LlmBody.parse(bytes);
  refuseOtherCase(body);
  return body;
}

async function readBytes(ctx: RequestContext, limit: number): Promise<Buffer> {
  try {
    return await ctx.body.read(limit);
  } catch (error) {
    if (error instanceof AppError && error.code === 'body_too_large') {
      throw llmError(
        'body_too_large',
        'request_body_too_large',
        'LLM request body exceeded the buffer limit',
      );
    }
    throw error;
  }
}

/** What a provider could take for JSON is read as JSON, whatever the client calls it: it may name a model. */
function isJson(bytes: Buffer, contentType: string): boolean {
  if (bytes.length === 0) return false;
  return /[/+]json\b/i.test(contentType) || /^\uFEFF?\s*\{/.test(bytes.toString('utf8', 0, 1024));
}

/**
 * The model that a request names; undefined when the call may do without and the request does. Throws an `AppError`
 * (400) when it names several: which one is taken would be the provider's choice, and rules on models ours.
 */
export function namedModel(ctx: RequestContext, endpoint: Endpoint, body: CallBody): string | undefined {
  const { model } = body.value;
  const names = new Set([...namesInTarget(ctx, endpoint), ...(body.names ?? [])]);
  if (typeof model === 'string' && model !== '') names.add(model);
  else if (model !== undefined || (names.size === 0 && !mayDoWithout(endpoint))) throw missingModel();
  if (names.size > 1)
    throw llmError(
      'llm_invalid',
      'ambiguous_model',
      'the request names several models: name one, in the body or in the URL',
    );
  return [...names][0];
}

const mayDoWithout = ({ isPassthrough, defaultModel }: Endpoint): boolean =>
  isPassthrough === true || defaultModel !== undefined;

const missingModel = (): Error =>
  llmError('llm_invalid', 'missing_model', "LLM request body is missing string field 'model'");

/** `/v1beta/models/x:generateContent`, `/openai/deployments/x/chat/completions`, `/engines/x/completions`. */
const MODEL_IN_PATH = /\/(?:models?|deployments|engines)\/([^/:]+)/g;

/** Names in the query, and in a path that `passthrough` opens. */
function namesInTarget({ path, query }: RequestContext, { isPassthrough }: Endpoint): string[] {
  const inQuery = query === '' ? [] : new URLSearchParams(query).getAll('model');
  if (!isPassthrough) return inQuery;
  const inPath = [...path.matchAll(MODEL_IN_PATH)].map(([, name]) => decoded(name as string));
  return [...inQuery, ...inPath];
}

const DECIDING: ReadonlySet<string> = new Set(['model', 'stream', ...TEXT_FIELDS]);

/**
 * Refuses members such as `Model`: decoders of some languages (Go's `encoding/json`) match names without case and take
 * the last of them, so that the provider could be told something else than we decided about.
 */
function refuseOtherCase({ value }: LlmBody): void {
  for (const member of Object.keys(value)) {
    const lower = member.toLowerCase();
    if (lower !== member && DECIDING.has(lower))
      throw llmError(
        'llm_invalid',
        'invalid_request_body',
        `LLM request body has a member that differs from \`${lower}\` only by case: write \`${lower}\``,
      );
  }
}
