import type { RequestContext } from '../kernel/request-context.ts';
import type { LlmCall } from './call.ts';

/** What is known of a call by its path. */
export interface Endpoint {
  readonly operation: LlmCall['operation'];
  /** The answer is no text of a model: vectors, scores, sounds, images. Its bytes say nothing of tokens. */
  readonly hasNoText?: boolean;
  /** The API takes forms here: files travel in them. */
  readonly takesForms?: boolean;
  /** The model that the API takes when a request names none. */
  readonly defaultModel?: string;
  /** Opened by `passthrough`: the body may be anything, and need not name a model. */
  readonly isPassthrough?: boolean;
}

/**
 * Calls that are open without configuration, all of them POST, by their path without `/v1`. Anything else could reach
 * what belongs to the owner of the provider's key: files, stored responses, fine-tuning jobs, the keys themselves.
 */
const ENDPOINTS: ReadonlyMap<string, Endpoint> = new Map<string, Endpoint>([
  ['/chat/completions', { operation: 'chat' }],
  ['/completions', { operation: 'text_completion' }],
  ['/embeddings', { operation: 'embeddings', hasNoText: true }],
  ['/responses', { operation: 'responses' }],
  ['/messages', { operation: 'other' }],
  ['/messages/count_tokens', { operation: 'other', hasNoText: true }],
  ['/rerank', { operation: 'other', hasNoText: true }],
  ['/v2/rerank', { operation: 'other', hasNoText: true }],
  // OpenAI's API reference, "Create moderation": `model` is optional, and this is its default.
  ['/moderations', { operation: 'other', hasNoText: true, defaultModel: 'omni-moderation-latest' }],
  ['/audio/speech', { operation: 'other', hasNoText: true }],
  ['/audio/transcriptions', { operation: 'other', takesForms: true }],
  ['/audio/translations', { operation: 'other', takesForms: true }],
  ['/images/generations', { operation: 'other', hasNoText: true }],
  ['/images/edits', { operation: 'other', hasNoText: true, takesForms: true }],
  ['/images/variations', { operation: 'other', hasNoText: true, takesForms: true }],
]);

/** `/v1/chat/completions` and `/chat/completions` are the same call: some clients have `/v1` in their base URL. */
export function withoutVersion(path: string): string {
  return path.startsWith('/v1/') ? path.slice('/v1'.length) : path;
}

/** Whether a request asks for the list of models, or for one of it: both are answered here. */
export function isModelList({ method, path }: Pick<RequestContext, 'method' | 'path'>): boolean {
  return (method === 'GET' || method === 'HEAD') && /^\/models(?:\/|$)/.test(withoutVersion(path));
}

/** A part of a path without its percent-encoding; as it stands when that encodes no text. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The call at a path, if it is open without configuration. */
export function endpointAt(method: string, path: string): Endpoint | undefined {
  return method === 'POST' ? ENDPOINTS.get(withoutVersion(path)) : undefined;
}

/** The call at a path that `passthrough` opens: known ones may stand behind a prefix, such as `/openai/deployments/x`. */
export function passthroughAt(path: string): Endpoint {
  const known = [...ENDPOINTS].find(([suffix]) => path.endsWith(suffix))?.[1];
  const { operation, hasNoText = false } = known ?? { operation: 'other' };
  return { operation, hasNoText, takesForms: true, isPassthrough: true };
}

/** The version with which a path begins, as in `/v2/rerank` and `/v1beta/models/x`. */
const VERSION = /^\/v\d+[a-z0-9]{0,8}(?=\/)/;

/** Cohere has rankings in its own API alone, beside the one that is compatible with OpenAI's. */
const COMPATIBILITY = '/compatibility/v1';

/**
 * Where a provider has what clients ask for at `path`. `/v1` stands for the path of the base URL; another version takes
 * the place of the one at its end.
 */
export function pathAtProvider(basePath: string, path: string): string {
  const version = VERSION.exec(path)?.[0];
  if (/^(?:\/v[12])?\/rerank$/.test(path) && basePath.endsWith(COMPATIBILITY))
    return `${basePath.slice(0, -COMPATIBILITY.length)}${version ?? '/v2'}/rerank`;
  if (version === undefined || version === '/v1') return basePath + withoutVersion(path);
  return basePath.replace(/\/v\d+[a-z0-9]{0,8}$/, '') + path;
}
