import { textReply } from '../kernel/error-response.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { allowedModels } from '../kernel/shared-slots.ts';
import { decodeSegment, withoutVersion } from './endpoints.ts';
import type { Model } from './model.ts';
import { forbiddenModel, unknownModel } from './model-errors.ts';
import { matchesModel } from './model-patterns.ts';
import type { VirtualModels } from './virtual-models.ts';

/** The models that clients may request. */
export interface ModelListing {
  readonly models: readonly Model[];
  readonly virtual: VirtualModels;
  /** Configured names of public models and virtual models. */
  readonly listed: readonly string[];
  /** Unix time in seconds. */
  readonly startedAt: number;
}

/** The response to `GET /v1/models` and `GET /v1/models/{id}`. Throws an `AppError`: 404 unknown, 403 not allowed. */
export function modelListResponse(ctx: RequestContext, listing: ModelListing): Reply {
  ctx.reason = 'DirectResponse';
  const id = withoutVersion(ctx.path).slice('/models/'.length);
  if (id !== '') return modelResponse(ctx, decodeSegment(id), listing);
  const { listed, startedAt } = listing;
  const data = listed.filter((name) => mayUse(ctx, name)).map((name) => entry(name, startedAt));
  return textReply(200, JSON.stringify({ object: 'list', data }), 'application/json');
}

function modelResponse(
  ctx: RequestContext,
  name: string,
  { models, virtual, listed, startedAt }: ModelListing,
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

/** Throws an `AppError` (403) if the caller's API key does not allow the model. */
export function requireAllowed(ctx: RequestContext, name: string): void {
  if (!mayUse(ctx, name)) throw forbiddenModel(ctx, name, allowedModels.get(ctx) ?? []);
}
