import { type AppError, ERRORS } from '../../../core/errors.ts';
import { shownName } from '../../../core/json-members.ts';
import { LIMITS } from '../../../core/limits.ts';
import { textReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { allowedModels } from '../../kernel/request/shared-slots.ts';
import { LlmError } from '../errors.ts';
import type { ModelListFormat } from '../formats/format.ts';
import { refusedModel } from '../llm-call.ts';
import { clientFormat, listedModel } from '../request/endpoints.ts';
import type { NamedModel } from '../request/named-models.ts';
import { type Model, replacingName } from './model.ts';
import { type FindModel, matchesModel } from './model-patterns.ts';
import type { VirtualModels } from './virtual-models.ts';

/** The models that clients may request. */
export interface ModelListing {
  readonly models: readonly Model[];
  /** Among `models`. */
  readonly findModel: FindModel<Model>;
  readonly virtual: VirtualModels;
  /** Configured names of public models and virtual models. */
  readonly listed: readonly string[];
  /** Unix time in seconds. */
  readonly startedAt: number;
}

/**
 * The response to `GET /v1/models` and `GET /v1/models/{id}`, in the format of the client: that of Gemini at
 * `/v1beta`, that of Anthropic with the header `anthropic-version`, else that of OpenAI. Throws an `AppError`: 404
 * unknown, 403 not allowed.
 */
export function modelListResponse(ctx: RequestContext, listing: ModelListing): Reply {
  ctx.reason = 'DirectResponse';
  const { entry, page } = clientFormat(ctx).modelList ?? OPENAI;
  const name = listedModel(ctx.path);
  if (name !== '') {
    requireListed(ctx, name, listing);
    return json(entry(name, listing.startedAt));
  }
  return json(page(namesFor(ctx, listing).map((each) => entry(each, listing.startedAt))));
}

/** The configured names that the caller may use, and the names that its key allows and a pattern matches. */
function namesFor(ctx: RequestContext, { findModel, listed }: ModelListing): string[] {
  const allowed = allowedModels.get(ctx) ?? [];
  const isServed = (name: string): boolean => findModel(name, ({ isPublic }) => isPublic) !== undefined;
  const concrete = allowed.filter((name) => !name.includes('*') && isServed(name));
  return [...new Set([...listed.filter((name) => mayUse(ctx, name)), ...concrete])];
}

function requireListed(
  ctx: RequestContext,
  name: string,
  { findModel, virtual, listed }: ModelListing,
): void {
  requireAllowed(ctx, name);
  const isKnown = virtual.has(name) || findModel(name, ({ isPublic }) => isPublic) !== undefined;
  if (!isKnown) throw unknownModel(ctx, name, listed);
}

const json = (value: object): Reply => textReply(200, JSON.stringify(value), 'application/json');

const OPENAI: ModelListFormat = {
  entry: (id, created) => ({ id, object: 'model', created, owned_by: 'openai' }),
  page: (data) => ({ object: 'list', data }),
};

function mayUse(ctx: RequestContext, name: string): boolean {
  return allowedModels.get(ctx)?.some((pattern) => matchesModel(pattern, name)) ?? true;
}

/** Throws an `AppError` (403) if the caller's API key does not allow the model. `member`: where the request names it, besides `model`. */
export function requireAllowed(ctx: RequestContext, name: string, member?: string): void {
  if (!mayUse(ctx, name)) throw forbiddenModel(ctx, name, allowedModels.get(ctx) ?? [], member);
}

// The client messages name only the model that the client has named, because others may be confidential. The log has the details.

/**
 * Throws an `AppError` (403 or 404) for a model that a request names beside the model of the call, unless the caller may
 * request it, too. The provider gets such a name as it is: a name that the gateway replaces is not known there.
 */
export function requireNamed(
  ctx: RequestContext,
  { name, member }: NamedModel,
  { findModel, listed }: ModelListing,
): void {
  requireAllowed(ctx, name, member);
  const entry = findModel(name, (model) => model.isPublic && model.matchesRequest(ctx));
  if (entry === undefined || (replacingName(entry, name) ?? name) !== name)
    throw unknownModel(ctx, name, listed, member);
  entry.authorize?.(ctx);
}

/** 404: the model does not exist. `listed`: existing names, for the log. */
export function unknownModel(
  ctx: RequestContext,
  requested: string,
  listed: readonly string[],
  member?: string,
): AppError {
  refusedModel.set(ctx, shown(requested));
  const detail = `unknown model ${JSON.stringify(shown(requested))}; available: ${namesOf(listed)}`;
  return refused('llm_not_found', 'model_not_found', requested, member, detail);
}

/** 403: the caller's API key does not allow the model. `allowed`: allowed patterns, for the log. */
function forbiddenModel(
  ctx: RequestContext,
  requested: string,
  allowed: readonly string[],
  member?: string,
): AppError {
  refusedModel.set(ctx, shown(requested));
  const detail = `the API key does not allow the model ${JSON.stringify(shown(requested))}; allowed: ${namesOf(allowed)}`;
  return refused('llm_forbidden', 'model_not_allowed', requested, member, detail);
}

function refused(
  code: 'llm_not_found' | 'llm_forbidden',
  llmCode: string,
  requested: string,
  member: string | undefined,
  detail: string,
): AppError {
  const { text } = ERRORS[code];
  const where = member === undefined ? '' : ` of the member ${shownName(member)}`;
  const message = `${text}: ${printable(requested)}${where}; GET /v1/models lists the models that you may use`;
  return new LlmError(code, llmCode, { message, logged: text, detail });
}

/** A name in quotes, without what terminals and pages do not show as it is: control characters, marks of direction, halves of pairs. */
const printable = (name: string): string =>
  JSON.stringify(shown(name)).replace(
    /[\p{C}\u2028\u2029]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );

const shown = (name: string): string =>
  name.length <= LIMITS.shownModelName ? name : `${name.slice(0, LIMITS.shownModelName)}…`;

function namesOf(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const rest = names.length - LIMITS.shownModels;
  const first = names.slice(0, LIMITS.shownModels).map(shown).join(', ');
  return rest > 0 ? `${first}, and ${rest} more` : first;
}
