import { AppError } from '../../../core/errors.ts';
import { decodedUri } from '../../../core/foreign.ts';
import { foldedName } from '../../../core/json-members.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CallTarget } from '../chat/chat-format.ts';
import { llmError } from '../errors.ts';
import { promptFields } from '../formats/text-fields.ts';
import { type CallBody, OpaqueBody } from './call-body.ts';
import type { Endpoint } from './endpoints.ts';
import { FormBody } from './form-body.ts';
import { JsonBody } from './json-body.ts';
import { isModelParameter } from './named-models.ts';
import { checkRequestedNumbers, NUMBER_FIELDS } from './request-numbers.ts';

/**
 * Reads the body of a call, up to `limit` bytes. Throws an `AppError` in the OpenAI format: 413 if larger, 400 if
 * invalid.
 */
export async function readRequest(ctx: RequestContext, endpoint: Endpoint, limit: number): Promise<CallBody> {
  let bytes: Buffer;
  try {
    bytes = await ctx.body.read(limit);
  } catch (error) {
    throw tooLargeForLlm(error) ?? error;
  }
  const contentType = ctx.headers.get('content-type') ?? '';
  if (endpoint.takesForms && /^multipart\/form-data\b/i.test(contentType))
    return FormBody.parse(bytes, contentType);
  if (endpoint.isPassthrough && !isJson(bytes, contentType)) return new OpaqueBody(bytes, contentType);
  return parseCall(bytes);
}

/** Parses the JSON of a call. @throws AppError (400) in the OpenAI format */
export async function parseCall(bytes: Buffer): Promise<JsonBody> {
  const body = await JsonBody.parse(bytes);
  rejectCaseVariants(body);
  checkRequestedNumbers(body);
  return body;
}

/** The error for a body over the limit in the OpenAI format; undefined for other errors. */
function tooLargeForLlm(error: unknown): AppError | undefined {
  if (!(error instanceof AppError) || error.code !== 'body_too_large') return undefined;
  return llmError(
    'body_too_large',
    'request_body_too_large',
    'LLM request body exceeded the buffer limit',
    error.message,
  );
}

/** Whether a provider might parse the body as JSON, whatever its content type. Such a body may name a model. */
function isJson(bytes: Buffer, contentType: string): boolean {
  if (bytes.length === 0) return false;
  return /[/+]json\b/i.test(contentType) || /^\uFEFF?\s*\{/.test(bytes.toString('utf8', 0, 1024));
}

/**
 * The model that a request names; undefined if it names none and neither the endpoint nor the backend (`isOptional`)
 * requires one. Throws an
 * `AppError` (400) if a required model is missing, or if several are named: the provider could use another one than was
 * authorized.
 */
export function requestedModel(
  ctx: RequestContext,
  endpoint: Endpoint,
  body: CallBody,
  { isOptional }: { isOptional: boolean },
): string | undefined {
  if (endpoint.target !== undefined) return modelInPath(ctx, endpoint.target, body);
  const { model } = body.value;
  const names = new Set([...namesInTarget(ctx, endpoint), ...(body.names ?? [])]);
  if (typeof model === 'string' && model !== '') names.add(model);
  else if (model !== undefined || (names.size === 0 && !isOptional && !isModelOptional(endpoint)))
    throw missingModel();
  if (names.size > 1) throw ambiguousModel();
  return [...names][0];
}

/** The model of a path that names it. Throws an `AppError` (400) if the query or the body names another one. */
function modelInPath(
  { query }: RequestContext,
  { model: named, stream }: CallTarget,
  { value }: CallBody,
): string {
  const { model = named } = value;
  const plain = typeof model === 'string' ? model.replace(/^models\//, '') : '';
  const parameters = new URLSearchParams(query);
  if (plain !== named || [...parameters.keys()].some(isModelParameter)) throw ambiguousModel();
  // Google would answer with a JSON list instead of events.
  if (stream && parameters.get('alt') !== 'sse')
    throw llmError('llm_invalid', 'unsupported_value', 'streams need the query `alt=sse`');
  return named;
}

/** Whether calls of an endpoint need not name a model. */
export const isModelOptional = ({ isPassthrough, defaultModel }: Endpoint): boolean =>
  isPassthrough === true || defaultModel !== undefined;

const ambiguousModel = (): Error =>
  llmError(
    'llm_invalid',
    'ambiguous_model',
    'the request names several models: name one, in the body or in the URL',
  );

const missingModel = (): Error =>
  llmError('llm_invalid', 'missing_model', "LLM request body is missing string field 'model'");

/**
 * `/v1beta/models/x:generateContent`, `/openai/deployments/x/chat/completions`, `/engines/x/completions`, `/model/x/invoke`,
 * `/v1/projects/p/locations/l/endpoints/x:predict`. In any case, and with encoded or repeated slashes, because the provider may
 * read them so.
 */
const MODEL_IN_PATH =
  /(?:\/|%2F)([a-z]*models?|deployments|engines|endpoints(?=[^:]*:[a-z]+$))(?:\/|%2F)+([^/]+)/gi;

/** A method of Google's APIs at the end of a path. Ids of Amazon Bedrock contain a colon, too: `titan-embed-text-v2:0`. */
const METHOD_AT_END = /:(?:[a-z]+[A-Z][A-Za-z]*|predict)$/;

/** Model names in the query and, for `passthrough` endpoints, in the path. */
function namesInTarget({ path, query }: RequestContext, { isPassthrough }: Endpoint): string[] {
  const parameters = query === '' ? [] : [...new URLSearchParams(query)];
  const inQuery = parameters.flatMap(([name, value]) => (isModelParameter(name) ? [value] : []));
  if (!isPassthrough) return inQuery;
  const inPath = [...path.matchAll(MODEL_IN_PATH)].map(([, kind = '', segment = '']) => {
    const name = decodedUri(segment.replace(METHOD_AT_END, ''));
    return /^tunedModels$/i.test(kind) ? `tunedModels/${name}` : name;
  });
  return [...inQuery, ...inPath];
}

/** Members that the gateway reads, by their folded names. */
const CHECKED_MEMBERS: ReadonlyMap<string, string> = new Map(
  ['model', 'stream', ...NUMBER_FIELDS, ...promptFields.map(({ name }) => name)].map((name) => [
    foldedName(name),
    name,
  ]),
);

/**
 * Rejects members such as `Model`: some decoders (Go's `encoding/json`) match names without case and use the last one,
 * so the provider could read another value than the gateway authorized.
 */
function rejectCaseVariants({ value }: JsonBody): void {
  for (const member of Object.keys(value)) {
    const expected = CHECKED_MEMBERS.get(foldedName(member));
    if (expected !== undefined && expected !== member) throw otherCase(expected);
  }
}

/** The error for a member of a body that differs only in case from one that the gateway reads. */
const otherCase = (expected: string): Error =>
  llmError(
    'llm_invalid',
    'invalid_request_body',
    `LLM request body has a member that differs from \`${expected}\` only by case: write \`${expected}\``,
  );
