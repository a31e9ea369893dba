import { z } from 'zod';
import { durationText } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { choice, nonEmpty } from '../../../core/schema/mapping.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { responseWaits } from '../../kernel/backend.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { ExpressionScope } from '../../kernel/expression.ts';
import { definePolicy, readsMemberOf } from '../../kernel/policy.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import { servicePoliciesSchema } from '../../transport/services/service-policies.ts';
import { isOneReference, serviceFields, serviceMeta } from '../../transport/services/service-reference.ts';
import { retryScope } from '../retry.ts';
import { connectProcessor } from './connect.ts';
import { addProcessorValues, type Named } from './context.ts';
import { processingOptionsSchema } from './modes.ts';
import { Processing, type ProcessingPlan } from './processing.ts';

const expressions = z.record(nonEmpty, nonEmpty);

const schema = z
  .strictObject({
    ...serviceFields,
    policies: servicePoliciesSchema
      .optional()
      .describe(
        `How the gateway connects to the service. \`http.requestTimeout\` limits the time of each answer; ${durationText(LIMITS.processorTimeout)} by default.`,
      ),
    failureMode: choice(
      'What happens if the service cannot be reached, takes too long, or does not keep to the protocol: `failClosed` rejects the request with 500; `failOpen` passes it or its response on as it was, unless a part was passed on already.',
      ['failClosed', 'failOpen'],
      'failClosed',
    ),
    metadataContext: z
      .record(nonEmpty, expressions)
      .optional()
      .describe(
        'Maps for the service (`metadata_context`), as CEL expressions; one that fails is omitted. The values of `agentgateway.dev.grpc_initial_metadata` are sent as metadata of the gRPC call.',
      ),
    requestAttributes: expressions
      .optional()
      .describe('Values for the service with a request (`attributes`), as CEL expressions.'),
    responseAttributes: expressions
      .optional()
      .describe('Values for the service with a response (`attributes`), as CEL expressions.'),
    processingOptions: processingOptionsSchema.prefault({}),
  })
  .check(isOneReference)
  .meta(serviceMeta)
  .describe(
    "Lets a service read and change requests and responses, with Envoy's protocol `envoy.service.ext_proc.v3` (gRPC).",
  );

const processings = new Slot<Map<ProcessingPlan, Processing>>();

/** External processing over gRPC. */
export const extProc = definePolicy({
  key: 'extProc',
  conditional: true,
  places: ['gateway', 'route'],
  requestExpressions: ['metadataContext', 'requestAttributes'],
  schema,
  trace: { kind: 'ext_proc', stage: 'ext proc', responseStage: 'ext proc' },
  sets: {
    isReadBy: (expression) => readsMemberOf('extproc', expression),
    missingFrom: (route) => ({
      code: 'AGW0309',
      message: `route \`${route}\` reads \`extproc\`, but none of its policies sets it`,
      help: 'add the policy `extProc`; until then `extproc` is null',
    }),
  },
  compile(config, context) {
    const compiled = compilePlan(config, context);
    if (compiled === undefined) return {};
    return {
      request: (ctx) => process(ctx, compiled),
      response: (ctx, reply) => processings.get(ctx)?.get(compiled)?.respond(reply),
      close: () => compiled.service.close(),
    };
  },
});

async function process(ctx: RequestContext, plan: ProcessingPlan) {
  const processing = new Processing(ctx, plan, (values) => addProcessorValues(ctx, values));
  processings.ensure(ctx, () => new Map()).set(plan, processing);
  // Before the waits of other policies, which then see what the service has made of the response.
  responseWaits.ensure(ctx, () => []).unshift((reply) => processing.response(reply));
  const reply = await processing.request();
  const isAnswered = reply !== undefined;
  ctx.observer?.policy({
    kind: 'extProc',
    action: isAnswered ? 'respond' : processing.problem === undefined ? 'apply' : 'skip',
    reason: isAnswered
      ? `the service answered with ${reply.status}`
      : (processing.problem ?? 'the service processed the request'),
  });
  return reply;
}

function compilePlan(config: z.output<typeof schema>, context: CompileContext): ProcessingPlan | undefined {
  const { metadataContext, requestAttributes, responseAttributes } = config;
  const { maxBufferSize, requestValidation } = context.settings;
  const named = (
    sources: Readonly<Record<string, string>> | undefined,
    at: CompileContext,
    scope: ExpressionScope,
  ): Named | undefined =>
    sources && Object.entries(sources).map(([name, source]) => [name, at.at(name).cel(source, scope)]);
  const compiled = {
    options: config.processingOptions,
    isOpen: config.failureMode === 'failOpen',
    limit: maxBufferSize,
    paths: requestValidation.pathNormalization,
    metadata:
      metadataContext &&
      Object.entries(metadataContext).map(
        ([namespace, sources]) =>
          [namespace, named(sources, context.at('metadataContext', namespace), requestScope) ?? []] as const,
      ),
    requestAttributes: named(requestAttributes, context.at('requestAttributes'), requestScope),
    responseAttributes: named(responseAttributes, context.at('responseAttributes'), retryScope),
  };
  const connected = connectProcessor(config, context);
  return connected && { ...compiled, ...connected };
}
