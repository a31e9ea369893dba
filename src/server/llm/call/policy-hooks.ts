import { detailOf } from '../../../core/errors.ts';
import { type ModelCall, type PolicyHooks, policyHooks } from '../../kernel/policy-hooks.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CallBody } from '../request/call-body.ts';
import type { Endpoint } from '../request/endpoints.ts';
import { JsonBody } from '../request/json-body.ts';
import { parseCall } from '../request/read-request.ts';

/** A call as the policies of the request leave it. */
interface HookedCall {
  readonly body: CallBody;
  /** The model to look for, if it is not the requested one. */
  readonly model: string | undefined;
}

/**
 * Lets the policies of the request see and change a call of a model, in order.
 *
 * @param model The requested one; undefined if the request names none.
 * @throws AppError if one of them denies it or fails, or leaves what is not a request
 */
export async function hookCall(
  ctx: RequestContext,
  { format }: Pick<Endpoint, 'format'>,
  body: CallBody,
  model: string | undefined,
): Promise<HookedCall> {
  const all = policyHooks.get(ctx)?.filter(({ llmCall }) => llmCall !== undefined) ?? [];
  let hooked: HookedCall = { body, model: undefined };
  for (const hooks of all) hooked = await runHook(hooks, format, hooked, model);
  return hooked;
}

async function runHook(
  hooks: PolicyHooks,
  format: string | undefined,
  { body, model }: HookedCall,
  requested: string | undefined,
): Promise<HookedCall> {
  const named = body.value['model'];
  const before = model ?? requested;
  const call: ModelCall = { format, model: before, request: structuredClone(body.value) };
  let hooked: HookedCall = { body, model };
  await hooks.llmCall?.(call, async () => {
    // Who sets the member of the request means the same.
    const inRequest = call.request['model'];
    const wanted: unknown = call.model === before && inRequest !== named ? inRequest : call.model;
    if (wanted !== undefined && typeof wanted !== 'string')
      throw new TypeError('`model` was set to what is not text');
    // The model that the provider gets is that of the configuration.
    if (named === undefined) delete call.request['model'];
    else call.request['model'] = named;
    hooked = {
      body: await changedBody(body, call.request),
      model: wanted === requested ? undefined : wanted,
    };
  });
  return hooked;
}

/** The body with the members of `request`. What has not changed keeps its text. */
async function changedBody(body: CallBody, request: Readonly<Record<string, unknown>>): Promise<CallBody> {
  const members = new Set([...Object.keys(body.value), ...Object.keys(request)]);
  const changed = [...members].filter(
    (name) => JSON.stringify(body.value[name]) !== JSON.stringify(request[name]),
  );
  if (changed.length === 0) return body;
  if (!(body instanceof JsonBody)) throw new TypeError('the request is not JSON, so it cannot be changed');
  const copy = body.original();
  for (const name of changed) {
    if (request[name] === undefined) copy.remove(name);
    else copy.set(name, request[name]);
  }
  try {
    return await parseCall(Buffer.from(copy.toString()));
  } catch (error) {
    // Of a body that a client has sent, it would be an error of the client.
    throw new TypeError(detailOf(error));
  }
}
