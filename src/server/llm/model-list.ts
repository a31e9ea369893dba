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
export function answerModels(x: RequestContext, listing: Listing): Reply {
  x.reason = 'DirectResponse';
  const id = withoutVersion(x.path).slice('/models/'.length);
  if (id !== '') return answerModel(x, decoded(id), listing);
  const { listed, startedAt } = listing;
  const data = listed.filter((name) => mayUse(x, name)).map((name) => entry(name, startedAt));
  return textReply(200, JSON.stringify({ object: 'list', data }), 'application/json');
}

function answerModel(
  x: RequestContext,
  name: string,
  { models, virtual, listed, startedAt }: Listing,
): Reply {
  requireAllowed(x, name);
  const isKnown =
    virtual.has(name) || models.some((model) => model.isPublic && matchesModel(model.name, name));
  if (!isKnown) throw unknownModel(x, name, listed);
  return textReply(200, JSON.stringify(entry(name, startedAt)), 'application/json');
}

const entry = (name: string, startedAt: number): object => ({
  id: name,
  object: 'model',
  created: startedAt,
  owned_by: 'openai',
});

function mayUse(x: RequestContext, name: string): boolean {
  return allowedModels.get(x)?.some((pattern) => matchesModel(pattern, name)) ?? true;
}

/** Throws an `AppError` (403) when the caller's API key is not for that model. */
export function requireAllowed(x: RequestContext, name: string): void {
  if (!mayUse(x, name)) throw forbiddenModel(x, name, allowedModels.get(x) ?? []);
}
