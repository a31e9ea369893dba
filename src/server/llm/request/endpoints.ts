import { z } from 'zod';
import { decodedUri } from '../../../core/foreign.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CallTarget } from '../chat/chat-format.ts';
import { defined } from '../chat/defined.ts';
import type { WireFormat } from '../formats/format.ts';
import { type FormatKey, formatOf, formats } from '../formats/index.ts';
import { modelResource } from '../formats/model-resource.ts';

/** What the path of a call determines. */
export interface Endpoint extends Pick<WireFormat, 'operation' | 'hasNoText' | 'defaultModel' | 'isFree'> {
  /** Model and streaming of formats whose paths name them. */
  readonly target?: CallTarget;
  /** Undefined: a `passthrough` path of unknown format. */
  readonly format?: FormatKey;
  /** Whether the API accepts forms, which carry files. */
  readonly takesForms?: boolean;
  /** Allowed by `passthrough`: the body may have any format and need not name a model. */
  readonly isPassthrough?: boolean;
  /** Path of the call in the provider's API, without `/v1`, if the client's path is another one. */
  readonly path?: string;
  /** Returns a stored response, which reports the usage of the call that created it. */
  readonly isRetrieval?: boolean;
  /** A call of batches. */
  readonly batch?: BatchPart | undefined;
  /** Allowed by `routes` of the policy `ai`, whatever the `passthrough` of models says. */
  readonly isRouted?: boolean;
}

/**
 * What a call has to do with batches. `creation`: of one, or of a file with its requests; `object`: the state of a batch;
 * `results`: a line for each of its requests; `file`: that, or any other file. `id`: of the batch or file, as in the path.
 */
export type BatchPart =
  | { readonly kind: 'creation' }
  | { readonly kind: 'object' | 'results' | 'file'; readonly id: string };

/**
 * Calls that are allowed by default, all of them POST, by their path without `/v1`: those of every format. Other
 * endpoints could expose data of the provider account: files, stored responses, fine-tuning jobs, API keys.
 */
const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map(
  formats.flatMap((format) => {
    const endpoint = endpointFor(format);
    return [
      ...format.paths.map((path) => [path, endpoint] as const),
      ...(format.formPaths ?? []).map((path) => [path, { ...endpoint, takesForms: true }] as const),
    ];
  }),
);

function endpointFor(format: WireFormat<FormatKey>): Endpoint {
  const { key, operation, hasNoText, defaultModel, isFree } = format;
  return { format: key, operation, ...defined({ hasNoText, defaultModel, isFree }) };
}

/** The call of a wire format, at whatever path of the client it is. */
export function endpointOf(key: FormatKey): Endpoint | undefined {
  const found = [...ENDPOINTS].find(([, { format }]) => format === key);
  return found && { ...found[1], path: found[0] };
}

/** Strips a leading `/v1`: some clients have it in their base URL, so both forms must work. */
export function withoutVersion(path: string): string {
  return path.startsWith('/v1/') ? path.slice('/v1'.length) : path;
}

/** `/models`, `/v1/models/{id}`, and those of the Gemini API: `/v1beta/models`. */
const MODEL_LIST = /^(?:\/v1[a-z0-9]{0,8})?\/models(?:\/(.*))?$/;

/** Whether a request reads the model list or one model of it, which the gateway answers itself. */
export function isModelList({ method, path }: Pick<RequestContext, 'method' | 'path'>): boolean {
  return (method === 'GET' || method === 'HEAD') && MODEL_LIST.test(path);
}

/** The model that a path of the model list names; '' for the whole list. */
export function listedModel(path: string): string {
  return decodedUri(MODEL_LIST.exec(path)?.[1] ?? '');
}

/** The call at a path if it is allowed by default, otherwise undefined. */
export function endpointAt(method: string, path: string): Endpoint | undefined {
  return method === 'POST' ? (ENDPOINTS.get(withoutVersion(path)) ?? modelMethodAt(path)) : undefined;
}

/** `/v1beta/models/gemini-2.5-pro:generateContent`. A name may contain slashes and colons. */
const MODEL_METHOD = /^(\/v1[a-z0-9]{0,8}\/)(models|tunedModels)\/(.+):([A-Za-z]+)$/;

function modelMethodAt(path: string): Endpoint | undefined {
  const [, , kind, name = '', method = ''] = MODEL_METHOD.exec(path) ?? [];
  const found = formatOfMethod(method);
  if (found === undefined) return undefined;
  const { stream } = found.methods?.[method] ?? { stream: false };
  const decoded = decodedUri(name);
  // A tuned model is another one than that of the same name at `/models`.
  const model = kind === 'models' ? decoded : `${kind}/${decoded}`;
  return { ...endpointFor(found), target: { model, stream } };
}

/** The path with another model, if it names one as `/v1beta/models/{model}:generateContent` does. */
export function withModel(path: string, model: string): string {
  const [, version, kind, , method] = MODEL_METHOD.exec(path) ?? [];
  return kind === undefined ? path : `${version}${modelResource(model)}:${method}`;
}

function formatOfMethod(method: string): WireFormat<FormatKey> | undefined {
  return formats.find(({ methods = {} }) => Object.hasOwn(methods, method));
}

/**
 * The call at a `passthrough` path. Known calls are recognized behind a prefix such as `/openai/deployments/x`. Requests
 * that create nothing are free: files, lists, and batches, whose usage is counted once it is known (`batches/`).
 */
export function passthroughAt(method: string, path: string): Endpoint {
  const { format, operation, hasNoText = false, isFree = false } = endpointBehindPrefix(path) ?? UNKNOWN;
  const isRetrieval = STORED_RESPONSE.test(`${method} ${path}`);
  const batch = format === undefined ? batchAt(method, path) : undefined;
  return {
    ...(format && { format }),
    operation,
    hasNoText,
    isFree: isFree || batch?.kind === 'object' || (format === undefined && method !== 'POST' && !isRetrieval),
    takesForms: true,
    isPassthrough: true,
    isRetrieval,
    batch,
  };
}

/** OpenAI's API reference, "Batch" and "Retrieve file content"; Anthropic's, "Retrieve Message Batch results". */
const BATCH_CALLS = {
  results: /^GET .*\/messages\/batches\/([^/]+)\/results$/,
  file: /^GET .*\/files\/([^/]+)\/content$/,
  object: /^(?:GET .*\/batches\/([^/]+)|POST .*\/batches\/([^/]+)\/cancel)$/,
} as const;

const BATCH_CREATION = /^POST .*\/(?:batches|files)$/;

function batchAt(method: string, path: string): BatchPart | undefined {
  const call = `${method} ${path}`;
  if (BATCH_CREATION.test(call)) return { kind: 'creation' };
  for (const kind of ['results', 'file', 'object'] as const) {
    const [, first, second] = BATCH_CALLS[kind].exec(call) ?? [];
    const id = first ?? second;
    if (id !== undefined) return { kind, id };
  }
  return undefined;
}

/** OpenAI's API reference, "Get a model response" and "Cancel a response". */
const STORED_RESPONSE = /^(?:GET .*\/responses\/[^/]+|POST .*\/responses\/[^/]+\/cancel)$/;

const UNKNOWN: Endpoint = { operation: 'other' };

/** The call at the end of a path, whatever precedes it. */
function endpointBehindPrefix(path: string): Endpoint | undefined {
  return [...ENDPOINTS].find(([suffix]) => path.endsWith(suffix))?.[1];
}

/** The wire format of the client of any request on an LLM route, also of one that is not allowed. */
export function clientFormat({
  path,
  headers,
}: {
  readonly path: string;
  readonly headers: { has(name: string): boolean };
}): WireFormat<FormatKey> {
  const key = endpointBehindPrefix(path)?.format ?? formatOfMethod(/:(\w+)$/.exec(path)?.[1] ?? '')?.key;
  if (key !== undefined) return formatOf(key);
  return formats.find(({ isSpokenBy }) => isSpokenBy?.({ path, headers })) ?? formatOf(undefined);
}

/** The leading version of a path, as in `/v2/rerank` and `/v1beta/models/x`. */
const VERSION = /^\/v\d+[a-z0-9]{0,8}(?=\/)/;

/** Base path of Cohere's OpenAI-compatible API. Reranking exists only in its native API. */
const COMPATIBILITY = '/compatibility/v1';

/**
 * Maps a client path to the provider's path. `/v1` maps to the path of the base URL; another version replaces the
 * version at the end of the base URL.
 */
export function pathAtProvider(basePath: string, path: string): string {
  const version = VERSION.exec(path)?.[0];
  if (/^(?:\/v[12])?\/rerank$/.test(path) && basePath.endsWith(COMPATIBILITY))
    return `${basePath.slice(0, -COMPATIBILITY.length)}${version ?? '/v2'}/rerank`;
  if (version === undefined || version === '/v1') return basePath + withoutVersion(path);
  return basePath.replace(/\/v\d+[a-z0-9]{0,8}$/, '') + path;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const pathsSchema = z.lazy(() =>
  z.array(
    z.strictObject({
      path: z
        .string()
        .regex(/^\/[A-Za-z0-9._~!$&'()+,;=:@/-]*\*?$/, {
          error: 'expected a path such as `/v1/files` or `/v1/files/*`',
        })
        .refine((path) => !path.endsWith('*') || path.endsWith('/*'), {
          error: 'expected a path with `*` directly after a slash, such as `/v1/files/*`',
        })
        .describe('Path of client requests. A trailing `/*` matches everything below. `/v1` may be omitted.'),
      methods: z.array(z.enum(METHODS)).min(1).default(['POST']).describe('Allowed methods.'),
    }),
  ),
);

export const passthroughSchema = z
  .union([pathsSchema, z.enum(['detect', 'opaque'])])
  .default([])
  .describe(
    "Additional endpoints forwarded to the provider of this model with its key, such as files, batches and stored responses. Tokens of batches count when their result is retrieved. A call without a model name uses the most specific model that allows its path; the client's key must allow that model. These endpoints read and change data of the whole provider account, not only the client's. `detect` allows every endpoint and translates none, with `opaque`, tokens are not counted either.",
  );

/** Endpoints that are forwarded besides those of wire formats. */
export interface Passthrough {
  readonly calls: z.output<typeof pathsSchema>;
  /** Calls are not translated: clients use the API of the provider. */
  readonly isNative: boolean;
  /** Tokens are not counted. */
  readonly isOpaque: boolean;
}

export function compilePassthrough(config: z.output<typeof passthroughSchema>): Passthrough {
  if (typeof config !== 'string') return { calls: config, isNative: false, isOpaque: false };
  return { calls: [{ path: '/*', methods: [...METHODS] }], isNative: true, isOpaque: config === 'opaque' };
}

/** Whether a call is allowed. */
export function allowsCall({ calls }: Passthrough, method: string, path: string): boolean {
  const requested = withoutVersion(path);
  return calls.some(
    ({ path: pattern, methods }) =>
      (methods as readonly string[]).includes(method) && covers(withoutVersion(pattern), requested),
  );
}

function covers(pattern: string, path: string): boolean {
  return pattern.endsWith('/*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
