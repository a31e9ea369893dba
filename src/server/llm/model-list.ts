import { allowedModels } from '../kernel/caller.ts';
import { textReply } from '../kernel/error-response.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { decoded, withoutVersion } from './endpoints.ts';
import type { Model } from './model.ts';
import { forbiddenModel, unknownModel } from './model-refusal.ts';
import { matchesModel } from './models.ts';
import type { VirtualModels } from './virtual-models.ts';

/** What clients may ask for. */
export interface Listing {
  readonly models: readonly Model[];
  readonly virtual: VirtualModels;
  /** Names, as configured. */
  readonly listed: readonly string[];
  readonly startedAt: number;
}

/** Answers `GET /v1/models`, and `GET /v1/models/{id}` with the model of that name. */
export function answerModels(ctx: RequestContext, listing: Listing): Reply {
  ctx.reason = 'DirectResponse';
  const id = withoutVersion(ctx.path).slice('/models/'.length);
  if (id !== '') return answerModel(ctx, decoded(id), listing);
  const { listed, startedAt } = listing;
  const data = listed.filter((name) => mayUse(ctx, name)).map((name) => entry(name, startedAt));
  return textReply(200, JSON.stringify({ object: 'list', data }), 'application/json');
}

function answerModel(
  ctx: RequestContext,
  name: string,
  { models, virtual, listed, startedAt }: Listing,
): Reply {
  requireAllowed(ctx, name);
  const isKnown =
    virtual.has(name) || models.some((model) => model.isPublic && matchesModel(model.name, name));
  if (!isKnown) throw unknownModel(ctx, name, listed);
  return textReply(200, JSON.stringify(entry(name, startedAt)), 'application/json');
}

const entry = (name: string, startedAt: number): object => ({
  id: name,
  object: 'model',
  created: startedAt,
  owned_by: 'openai',
});

function mayUse(ctx: RequestContext, name: string): boolean {
  return allowedModels.get(ctx)?.some((pattern) => matchesModel(pattern, name)) ?? true;
}

/** Throws an `AppError` (403) when the caller's API key is not for that model. */
export function requireAllowed(ctx: RequestContext, name: string): void {
  if (!mayUse(ctx, name)) throw forbiddenModel(ctx, name, allowedModels.get(ctx) ?? []);
}
