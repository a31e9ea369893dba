import { z } from 'zod';
import { pathText } from '../../../core/diagnostic.ts';
import { durationSchema, durationText } from '../../../core/duration.ts';
import { LIMITS } from '../../../core/limits.ts';
import { nonEmpty } from '../../../core/schema/mapping.ts';
import { responseWaits } from '../../kernel/backend.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { missingConfigFile, resolveConfigFile } from '../../kernel/files/config-file.ts';
import { fileVersion } from '../../kernel/files/file-version.ts';
import { type CompiledPolicy, definePolicy } from '../../kernel/policy.ts';
import { type PolicyHooks, policyHooks } from '../../kernel/policy-hooks.ts';
import { programPolicies } from '../../kernel/program-policies.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { replyFrom } from './answer.ts';
import type { PolicyDefinition } from './api.ts';
import { checkOptions, policyIn } from './definition.ts';
import { runHook } from './hook-runner.ts';
import { RequestView, ResponseView } from './message-views.ts';
import { loadModule, problemIn, withinLoading } from './module-files.ts';
import { POLICY_SCOPE, type PolicyUse } from './policy-use.ts';

const entry = z
  .strictObject({
    module: nonEmpty
      .optional()
      .describe(
        'File whose default export is the policy, in TypeScript or JavaScript. It is loaded again when it, or a file that it imports, has changed.',
      ),
    policy: nonEmpty
      .optional()
      .describe('Name of a policy that the program gives to `createGateway`, instead of a file.'),
    options: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Options of the policy, which the policy's own schema checks."),
    timeout: durationSchema
      .refine((value) => value > 0 && value <= LIMITS.moduleCallMost, {
        error: `expected a duration above zero and of at most ${durationText(LIMITS.moduleCallMost)}, such as \`500ms\``,
      })
      .default(LIMITS.moduleCall)
      .describe(
        `How long one function of the policy may take; then the request is answered with 500. ${durationText(LIMITS.moduleCall)} by default. Code that never waits is not interrupted.`,
      ),
  })
  .refine(({ module, policy }) => (module === undefined) !== (policy === undefined), {
    error: 'expected either `module` or `policy`',
  });

type Entry = z.output<typeof entry>;

const schema = z
  .array(entry)
  .min(1)
  .describe(
    'Policies of your own, in TypeScript: each can change, answer or deny requests, responses, calls of MCP servers and of models. They run in order, inside the gateway and with all its rights.',
  );

/** Policies in TypeScript. */
export const modules = definePolicy({
  key: 'modules',
  places: ['gateway', 'route'],
  refusesBy: 'its code',
  schema,
  trace: { kind: 'modules', stage: 'modules' },
  compile(entries, context) {
    const loaded: PolicyUse[] = [];
    const files = entries.map((each, index) => fileOf(each, context.at(index)));
    return {
      ...running(loaded, context),
      async prepare() {
        for (const [index, each] of entries.entries()) {
          const use = await load(each, files[index], context.at(index));
          if (use !== undefined) loaded.push(use);
        }
      },
    };
  },
  combine: (policies) => ({
    async request(ctx) {
      for (const policy of policies) {
        const reply = await policy.request?.(ctx);
        if (reply !== undefined) return reply;
      }
      return undefined;
    },
  }),
});

/** The file of an entry, which must exist; its code is not loaded yet. */
function fileOf({ module }: Entry, context: CompileContext): string | undefined {
  if (module === undefined) return undefined;
  const file = resolveConfigFile(context.folder, module);
  context.dependsOn(file);
  const problem = missingConfigFile(context.folder, module);
  if (problem === undefined) return file;
  context.at('module').report({
    code: 'AGW0107',
    message: problem,
    help: 'correct the path; it is relative to the configuration',
  });
  return undefined;
}

async function load(
  { policy: name, options, timeout }: Entry,
  file: string | undefined,
  context: CompileContext,
): Promise<PolicyUse | undefined> {
  const definition = name === undefined ? await fromFile(file, context) : fromProgram(name, context);
  if (definition === undefined) return undefined;
  const checked = await withinLoading(checkOptions(definition, options), 'the schema has not answered').catch(
    (error: unknown) => ({
      problems: [{ path: [], message: `the schema of the policy has failed: ${problemIn(error)}` }],
    }),
  );
  if ('problems' in checked) {
    for (const { path, message } of checked.problems)
      context.at('options', ...path).report({
        code: 'AGW0104',
        message: `${pathText(['options', ...path])}: ${message}`,
        label: `the policy \`${definition.name}\` checks these options`,
      });
    return undefined;
  }
  const count = context.settings.counter('policyCalls');
  return {
    definition,
    options: checked.value,
    timeout,
    log: context.log,
    redactor: context.redactor,
    count: (hook, outcome) => count([definition.name, hook, outcome]),
  };
}

async function fromFile(
  file: string | undefined,
  context: CompileContext,
): Promise<PolicyDefinition | undefined> {
  if (file === undefined) return undefined;
  const { files, value } = loadModule(file, (error) =>
    context.log.error(POLICY_SCOPE, 'a policy has failed', {
      file,
      problem: context.redactor().line(problemIn(error)),
    }),
  );
  try {
    const loaded = await value;
    // Written meanwhile: its next change would find what is not in use.
    if ([...files].some(([path, version]) => fileVersion(path) !== version))
      return await fromFile(file, context);
    return policyIn(loaded);
  } catch (error) {
    reportBroken(error, context.at('module'));
    return undefined;
  } finally {
    for (const each of files.keys()) context.dependsOn(each);
  }
}

function fromProgram(name: string, context: CompileContext): PolicyDefinition | undefined {
  const at = context.at('policy');
  const given = programPolicies
    .get(context.settings)
    ?.find((each) => Reflect.get(Object(each), 'name') === name);
  if (given === undefined)
    at.report({
      code: 'AGW0107',
      message: `the program gives no policy \`${name}\``,
      help: 'give it as `createGateway(config, { policies: [ … ] })`, or name its file with `module`',
    });
  try {
    return given === undefined ? undefined : policyIn(given);
  } catch (error) {
    reportBroken(error, at);
    return undefined;
  }
}

function reportBroken(error: unknown, context: CompileContext): void {
  context.report({
    code: 'AGW0404',
    message: `the policy cannot be used: ${problemIn(error)}`,
    help: 'docs/policies.md shows what a policy is',
  });
}

function running(uses: readonly PolicyUse[], context: CompileContext): Pick<CompiledPolicy, 'request'> {
  const { maxBufferSize, requestValidation } = context.settings;
  const place = context.place();
  return {
    async request(ctx) {
      policyHooks.set(ctx, [...(policyHooks.get(ctx) ?? []), ...uses.map((use) => hooksOf(use, ctx, place))]);
      for (const use of uses) {
        const { definition } = use;
        if (definition.response !== undefined)
          responseWaits.ensure(ctx, () => []).unshift((reply) => respond(use, ctx, reply, maxBufferSize));
        if (definition.request === undefined) continue;
        const view = new RequestView(ctx, maxBufferSize, requestValidation.pathNormalization);
        const answer = await runHook(use, ctx, {
          name: 'request',
          run: (own) => definition.request?.(view, own),
        });
        if (answer !== undefined) return replyFrom(answer);
      }
      return undefined;
    },
  };
}

async function respond(use: PolicyUse, ctx: RequestContext, reply: Reply, limit: number): Promise<void> {
  const view = new ResponseView(ctx, reply, limit);
  await runHook(use, ctx, { name: 'response', run: (own) => use.definition.response?.(view, own) });
}

/** What backends call. */
function hooksOf(use: PolicyUse, ctx: RequestContext, place: PolicyHooks['place']): PolicyHooks {
  const { definition } = use;
  const { name, llmCall, mcpCall, mcpResult } = definition;
  return {
    name,
    place,
    ...(llmCall && {
      llmCall: async (call, check) => {
        await runHook(use, ctx, { name: 'llmCall', run: (own) => definition.llmCall?.(call, own), check });
      },
    }),
    ...(mcpCall && {
      mcpCall: async (call, check) => {
        await runHook(use, ctx, { name: 'mcpCall', run: (own) => definition.mcpCall?.(call, own), check });
      },
    }),
    ...(mcpResult && {
      mcpResult: async (answer, check) => {
        await runHook(use, ctx, {
          name: 'mcpResult',
          run: (own) => definition.mcpResult?.(answer, own),
          check,
        });
      },
    }),
  };
}
