import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { definePolicy } from '../../kernel/policy.ts';
import { messageGuards } from '../request-fields.ts';
import { type Guard, ProcessorChain } from './message-guards.ts';
import {
  checkablePhases,
  commonPhases,
  DEFAULT_METHODS,
  METHOD_PATTERN,
  namesMethod,
  nearestKey,
  type Phases,
  phasesOf,
  rank,
} from './methods.ts';
import type { Processor } from './processor.ts';
import { regex } from './regex.ts';
import { remote } from './remote.ts';
import { webhook } from './webhook.ts';

const methods = z
  .record(
    z.string().regex(METHOD_PATTERN, {
      error: 'expected a method such as `tools/call`, or a pattern such as `tools/*`, `*/read` or `*`',
    }),
    z.enum(['off', 'request', 'response', 'full']),
  )
  .default({ ...DEFAULT_METHODS })
  .describe(
    'Which messages are checked: the parameters (`request`) or results (`response`) of `tools/call`, `prompts/get` and `resources/read`, or both (`full`); except by patterns, also the results of lists such as `tools/list`. The most specific key decides.',
  );

const regexSchema = z.strictObject({
  kind: z.literal(regex.kind).describe('Patterns.'),
  methods,
  ...regex.fields,
});
const webhookSchema = z.strictObject({
  kind: z.literal(webhook.kind).describe('An HTTP service.'),
  methods,
  ...webhook.fields,
});
const remoteSchema = z.strictObject({
  kind: z
    .literal(remote.kind)
    .describe(
      "A gRPC service with upstream's protocol `ExtMcp`. Needs the packages `@grpc/grpc-js` and `@grpc/proto-loader`, installed next to agctl.",
    ),
  methods,
  ...remote.fields,
});
type ProcessorConfig = z.output<typeof processorSchema>;

const processorSchema = z.discriminatedUnion('kind', [regexSchema, webhookSchema, remoteSchema]);

const schema = z
  .strictObject({
    processors: z
      .array(processorSchema)
      .min(1)
      .describe(
        'Checks, in order. Each gets what the previous one left; the first that rejects ends the call.',
      ),
  })
  .describe(
    'Checks the arguments and results of tools, prompts and resources; they can be changed or rejected. For `mcp` backends only.',
  );

/** Guardrails for messages of MCP. The MCP backend runs them on each message. */
export const mcpGuardrails = definePolicy({
  key: 'mcpGuardrails',
  places: ['route', 'backend'],
  isForBackendCall: true,
  requestExpressions: ['processors[].headers', 'processors[].metadata'],
  schema,
  trace: { kind: 'mcp_guardrails', stage: 'mcp guardrails', isBackendPolicy: true, guardsContent: true },
  checkRoute(_settings, { name, backends }, context) {
    if (backends.some(({ api }) => api === 'mcp')) return;
    context.report({
      code: 'AGW0303',
      atKey: true,
      message: `\`mcpGuardrails\` has no effect: route \`${name}\` has no \`mcp\` backend`,
      label: 'only `mcp` backends have tools, prompts and resources',
      help: 'configure the MCP servers as `mcp: { targets: [ … ] }`; for model calls, use `guardrails` of the model',
    });
  },
  compile({ processors }, context) {
    context.settings.secretNames.guarded.add('mcp');
    const guards = processors.flatMap((config, index) => {
      const guard = compileGuard(config, index, context.at('processors', index));
      return guard === undefined ? [] : [guard];
    });
    return {
      request(ctx) {
        messageGuards.set(ctx, new ProcessorChain(ctx, guards));
        return undefined;
      },
      close: async () => {
        await Promise.all(guards.map(({ processor }) => processor.close()));
      },
    };
  },
});

function compileGuard(config: ProcessorConfig, index: number, context: CompileContext): Guard | undefined {
  const checkable = checkablePhases(config.kind !== 'regex');
  const phases = new Map(
    [...checkable].map(([method, possible]) => [
      method,
      commonPhases(phasesOf(method, config.methods), possible),
    ]),
  );
  checkMethods(config, checkable, phases, context.at('methods'));
  const processor = compileProcessor(config, context);
  if (processor === undefined) return undefined;
  return { processor, phases, name: `mcpGuardrails.processors[${index}] (${config.kind})` };
}

/** Reports keys that name no method or have no effect, and a processor without any effect: it would let all pass. */
function checkMethods(
  { kind, methods }: ProcessorConfig,
  checkable: ReadonlyMap<string, Phases>,
  checked: ReadonlyMap<string, Phases>,
  context: CompileContext,
): void {
  const checks = `\`${kind}\` checks ${[...checkable].map(([method, possible]) => (possible === 'full' ? method : `${method} (${possible})`)).join(', ')}`;
  const unknown = Object.keys(methods).filter((key) => !namesMethod(key));
  for (const key of unknown) {
    const meant = nearestKey(key, checkable);
    const fault = key.includes('*') ? 'matches no MCP method' : 'is not an MCP method';
    context.at(key).report({
      code: 'AGW0104',
      atKey: true,
      message: `\`${key}\` ${fault}${meant === undefined ? '' : `: did you mean \`${meant}\`?`}`,
      label: checks,
      help: meant === undefined ? 'correct or remove this key' : `write \`${meant}\``,
    });
  }
  for (const [key, phases] of Object.entries(methods)) {
    if (unknown.includes(key)) continue;
    const matched = [...checkable].filter(([method]) => rank(key, method) > 0);
    if (matched.some(([, possible]) => phases === 'off' || commonPhases(phases, possible) !== 'off'))
      continue;
    context.at(key).report({
      code: 'AGW0303',
      atKey: true,
      message: `\`${key}: ${phases}\` has no effect`,
      label: checks,
      help: 'remove this key',
    });
  }
  if (unknown.length > 0 || [...checked.values()].some((phases) => phases !== 'off')) return;
  context.report({
    code: 'AGW0104',
    atKey: true,
    message: 'this processor checks nothing',
    label: checks,
    help: 'add a method, such as `tools/call: full`, or remove the processor',
  });
}

function compileProcessor(config: ProcessorConfig, context: CompileContext): Processor | undefined {
  switch (config.kind) {
    case 'regex':
      return regex.compile(config, context);
    case 'webhook':
      return webhook.compile(config, context);
    case 'remote':
      return remote.compile(config, context);
  }
}
