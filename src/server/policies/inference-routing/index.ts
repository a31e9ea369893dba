import { z } from 'zod';
import { mapping } from '../../../core/schema/mapping.ts';
import { responseWaits } from '../../kernel/backend.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { definePolicy } from '../../kernel/policy.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import { pickedEndpoints } from '../../transport/picked-endpoints.ts';
import { isOneReference, serviceFields, serviceMeta } from '../../transport/services/service-reference.ts';
import { connectProcessor } from '../ext-proc/connect.ts';
import { processingOptionsSchema } from '../ext-proc/modes.ts';
import type { ProcessingPlan } from '../ext-proc/processing.ts';
import { Picking } from './picking.ts';

const schema = mapping(
  "Asks an endpoint picker of the Gateway API Inference Extension which endpoint of a `service` gets a request, with Envoy's protocol `envoy.service.ext_proc.v3` (gRPC).",
  {
    endpointPicker: z
      .strictObject(serviceFields)
      .check(isOneReference)
      .meta(serviceMeta)
      .describe(
        'The endpoint picker. It reads and can change requests and responses, whose bodies pass through it. If it fails, the request is rejected with 500; if it names no endpoint, with 503.',
      ),
    destinationMode: z
      .literal('passthrough', {
        error:
          'only `passthrough` is supported: `validated` (the default of agentgateway) needs the endpoints of a control plane',
      })
      .describe(
        '`passthrough`: the request is sent to the address that the picker names (`ip:port`), or to the next one of several if it cannot be connected to. Which addresses it names is not restricted, except those of the local link and of groups.',
      ),
  },
);

const pickings = new Slot<Map<ProcessingPlan, Picking>>();

/** An endpoint picker. */
export const inferenceRouting = definePolicy({
  key: 'inferenceRouting',
  places: ['backend'],
  schema,
  trace: { kind: 'inference_routing', stage: 'inference routing', isBackendPolicy: true },
  checkRoute(_, { backends }, context) {
    if (backends.every(({ connectsTo }) => connectsTo.kind === 'service' && connectsTo.isPicked === true))
      return;
    context.report({
      code: 'AGW0104',
      message: '`inferenceRouting` belongs to backends with `service`',
      help: 'write `service: { name: namespace/hostname, port: 8000 }` for the backend, and the service under `services`',
      atKey: true,
    });
  },
  compile({ endpointPicker }, context) {
    const plan = compilePlan(endpointPicker, context);
    if (plan === undefined) return {};
    const pickingOf = (ctx: RequestContext): Picking | undefined => pickings.get(ctx)?.get(plan);
    return {
      request: (ctx) => pick(ctx, plan),
      response: (ctx, reply) => pickingOf(ctx)?.respond(reply),
      repeated: (ctx) => pickingOf(ctx)?.finish(),
      close: () => plan.service.close(),
    };
  },
});

async function pick(ctx: RequestContext, plan: ProcessingPlan): Promise<Reply | undefined> {
  const known = pickings.ensure(ctx, () => new Map());
  const picking = new Picking(ctx, plan, known.get(plan)?.tried);
  known.set(plan, picking);
  const reply = await picking.request();
  ctx.observer?.policy({
    kind: 'inferenceRouting',
    action: reply === undefined ? 'apply' : 'respond',
    reason:
      reply === undefined
        ? `endpoint ${pickedEndpoints.get(ctx)?.first}`
        : `the endpoint picker answered with ${reply.status}`,
  });
  if (reply !== undefined) return reply;
  // Only for the response of an endpoint that it has picked: a repeated call may be that of another backend.
  responseWaits.ensure(ctx, () => []).unshift((answer) => picking.response(answer));
  return undefined;
}

function compilePlan(
  picker: Parameters<typeof connectProcessor>[0],
  context: CompileContext,
): ProcessingPlan | undefined {
  const { maxBufferSize, requestValidation } = context.settings;
  const connected = connectProcessor(picker, context.at('endpointPicker'));
  return (
    connected && {
      ...connected,
      options: processingOptionsSchema.parse({}),
      isOpen: false,
      limit: maxBufferSize,
      paths: requestValidation.pathNormalization,
      metadata: undefined,
      requestAttributes: undefined,
      responseAttributes: undefined,
    }
  );
}
