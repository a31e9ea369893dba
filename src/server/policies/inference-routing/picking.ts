import { AppError } from '../../../core/errors.ts';
import { membersOf, textIn } from '../../../core/foreign.ts';
import { backendCaller } from '../../kernel/backend.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { endpointsIn, type PickedEndpoints, pickedEndpoints } from '../../transport/picked-endpoints.ts';
import { toStruct } from '../../transport/services/protobuf-struct.ts';
import { Processing, type ProcessingPlan } from '../ext-proc/processing.ts';

/** Names of the endpoint picker protocol ("Destination Endpoint", "Destination Endpoint Served"). */
const DESTINATION = 'x-gateway-destination-endpoint';
const SERVED = 'x-gateway-destination-endpoint-served';
const NAMESPACE = 'envoy.lb';

/** One call of a backend, for which a picker is asked. */
export class Picking {
  readonly #ctx: RequestContext;
  readonly #plan: ProcessingPlan;
  readonly #processing: Processing;
  /** Endpoints of earlier calls for the same request. */
  readonly #triedBefore: readonly string[];
  /** The destination in `dynamic_metadata`. */
  #fromMetadata = '';
  #endpoints: readonly string[] = [];
  #picked: PickedEndpoints | undefined;

  constructor(ctx: RequestContext, plan: ProcessingPlan, triedBefore: readonly string[] = []) {
    this.#ctx = ctx;
    this.#plan = plan;
    this.#triedBefore = triedBefore;
    this.#processing = new Processing(ctx, plan, (values) => {
      const named = textIn(membersOf(values[NAMESPACE])[DESTINATION]);
      if (named !== '') this.#fromMetadata = named;
    });
  }

  /** The endpoints that were tried for the request, by this call and by earlier ones. */
  get tried(): readonly string[] {
    const own = this.#endpoints.slice(0, this.#endpoints.length - (this.#picked?.remaining.length ?? 0));
    return [...this.#triedBefore, ...own];
  }

  /** Asks the picker. Returns its reply, if it has answered the request itself. @throws AppError */
  async request(): Promise<Reply | undefined> {
    const { headers, body } = this.#ctx;
    // Only the picker names an endpoint, not the client.
    headers.delete(DESTINATION);
    const reply = await this.#processing.request();
    if (reply !== undefined) return reply;
    const named = headers.all(DESTINATION).join(',') || this.#fromMetadata;
    const usable = endpointsIn(named);
    // A call that is repeated goes on with the endpoints that it has not tried.
    const fresh = usable.filter((each) => !this.#triedBefore.includes(each));
    const endpoints = fresh.length === 0 ? usable : fresh;
    const [first] = endpoints;
    if (first === undefined)
      throw new AppError('no_endpoint', {
        detail: `the endpoint picker named ${named === '' ? 'no endpoint' : 'no endpoint that can be used, as `ip:port`'}`,
      });
    this.#endpoints = endpoints;
    this.#picked = { first, remaining: [...endpoints] };
    pickedEndpoints.set(this.#ctx, this.#picked);
    const isRepeated = backendCaller.get(this.#ctx) !== undefined;
    if (isRepeated || endpoints.length > 1) await body.capture(this.#plan.limit);
    if (isRepeated && body.captured === undefined)
      throw new AppError('ext_proc_failed', {
        detail: `the endpoint picker has made the body larger than ${this.#plan.limit} bytes`,
      });
    return undefined;
  }

  /** Lets the picker process the response of an endpoint that it has named. @throws AppError */
  response(reply: Reply): Promise<void> {
    const served = this.#picked?.served;
    if (served === undefined || pickedEndpoints.get(this.#ctx) !== this.#picked) return Promise.resolve();
    return this.#processing.response(reply, {
      metadata_context: { filter_metadata: { [NAMESPACE]: toStruct({ [SERVED]: served }) } },
    });
  }

  respond(reply: Reply): void {
    this.#processing.respond(reply);
  }

  /** Ends the call of the picker. */
  finish(): void {
    pickedEndpoints.set(this.#ctx, undefined);
    this.#processing.finish();
  }
}
