import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Bound } from '../kernel/inspection.ts';
import type { Backend } from '../kernel/request-context.ts';
import { mcpProcessOf } from './process.ts';
import { checkHostAndOrigin } from './rebinding.ts';
import { SessionStore } from './session-store.ts';
import { handleHttp } from './streamable-http.ts';
import type { Target, TargetKind } from './target.ts';
import { targetKinds } from './targets/index.ts';

// Lower-case labels joined by dots; `_` and `+` separate a target's name from the names of its items.
const TARGET_NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

const kindSchemas = Object.fromEntries(targetKinds.map((kind) => [kind.key, kind.schema.optional()])) as {
  [Kind in (typeof targetKinds)[number] as Kind['key']]: z.ZodOptional<Kind['schema']>;
};

const REMOTE = 'write `mcp: { host: https://…/mcp }` for a remote server';

const targetSchema = z
  .strictObject({
    name: z
      .string()
      .max(253)
      .regex(TARGET_NAME, { error: 'expected lower-case letters, digits, `-` and `.`' })
      .describe('Name of the target. Prefixes the names of its tools when there are several targets.'),
    ...kindSchemas,
  })
  .meta({
    elsewhere: {
      url: REMOTE,
      http: REMOTE,
      streamableHttp: REMOTE,
      sse: `${REMOTE}; a server that has only the older HTTP+SSE transport is not supported`,
      command: 'write `stdio: { cmd: …, args: [ … ] }`',
    },
  });

/** Fields of an MCP backend; also of the simplified top-level `mcp`. */
export const mcpFields = {
  targets: z.array(targetSchema).min(1).describe('MCP servers that this endpoint offers together.'),
  prefixMode: z
    .enum(['conditional', 'always', 'never'])
    .default('conditional')
    .describe('Whether tools are named `target_tool`: with several targets only, always, or never.'),
  failureMode: z
    .enum(['failOpen', 'failClosed'])
    .default('failOpen')
    .describe('What one target that does not work means: the others serve on, or every session fails.'),
  dnsRebindingProtection: z
    .union([z.literal('auto'), z.boolean()])
    .default('auto')
    .describe(
      'Refuse foreign Host and Origin headers: `auto` on connections that came in on a loopback address, `true` on all, `false` never.',
    ),
};

const schema = z.strictObject(mcpFields).describe('One or more MCP servers behind one endpoint.');
export type McpBackendConfig = z.output<typeof schema>;

export const mcp = defineBackend({
  key: 'mcp',
  schema,
  open(config, context, name) {
    const targets = config.targets.map((target, index) =>
      compileTarget(target, context.at('targets', index)),
    );
    refuseDuplicates(config, context);
    const prefixed =
      config.prefixMode === 'always' || (config.prefixMode === 'conditional' && targets.length > 1);
    if (prefixed) warnOfPrefixes(config, context);
    const sessions = new SessionStore(
      {
        backend: name,
        targets,
        prefixed,
        failClosed: config.failureMode === 'failClosed',
        log: context.log,
      },
      mcpProcessOf(context.settings),
    );
    context.inspection.addBackend(context.path, () => sessions.state());
    context.inspection.bounds.push(...boundsOf(sessions, context));
    const backend: Backend = {
      async handle(ctx) {
        if (config.dnsRebindingProtection !== false)
          checkHostAndOrigin(ctx, context.hostnames, config.dnsRebindingProtection === true);
        return handleHttp(ctx, sessions);
      },
      drain: () => sessions.drain(),
      takeOver(previous) {
        const before = stores.get(previous as Backend);
        if (before !== undefined) sessions.takeOver(before);
        return before !== undefined;
      },
      retired: () => sessions.retired(),
      close: () => sessions.close(),
    };
    stores.set(backend, sessions);
    return backend;
  },
});

/** Sessions of the backends there are, for those that come in their place. */
const stores = new WeakMap<Backend, SessionStore>();

/** What one MCP backend holds. Of what is capped a session, the fullest one counts. */
function boundsOf(sessions: SessionStore, { path, settings }: CompileContext): Bound[] {
  const at = path.join('.');
  return [
    { name: 'mcp.sessions', at, max: mcpProcessOf(settings).maxSessions, used: () => sessions.total },
    { name: 'mcp.endedSessions', at, max: LIMITS.endedSessions, used: () => sessions.ended },
    {
      name: 'mcp.session.inFlight',
      at,
      max: LIMITS.inFlightPerSession,
      used: () => sessions.fullest(({ inFlight }) => inFlight),
    },
    {
      name: 'mcp.session.unanswered',
      at,
      max: LIMITS.inFlightPerSession,
      used: () => sessions.fullest(({ unanswered }) => unanswered),
    },
    {
      name: 'mcp.session.queuedMessages',
      at,
      max: LIMITS.queuedMessages,
      used: () => sessions.fullest(({ queued }) => queued),
    },
  ];
}

function compileTarget(config: McpBackendConfig['targets'][number], context: CompileContext): Target {
  const present = targetKinds.filter(({ key }) => config[key] !== undefined);
  const keys = targetKinds.map(({ key }) => `\`${key}\``).join(' or ');
  const [kind] = present;
  if (present.length !== 1 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message:
        present.length === 0
          ? `target \`${config.name}\` says no way to reach it`
          : `target \`${config.name}\` has more than one kind`,
      label: `expected exactly one of ${keys}`,
      help: 'add `stdio: { cmd: … }` for a local command, or `mcp: { host: https://… }` for a remote server',
    });
    return {
      name: config.name,
      resumable: false,
      endpoint: undefined,
      open: () => Promise.reject(new Error('not configured')),
      close: () => Promise.resolve(),
    };
  }
  return (kind as TargetKind).compile(config.name, config[kind.key], context.at(kind.key));
}

/** Providers of LLMs take tool names of `[a-zA-Z0-9_-]{1,64}` (OpenAI, Anthropic): a prefix must leave that possible. */
function warnOfPrefixes({ targets }: McpBackendConfig, context: CompileContext): void {
  for (const [index, { name }] of targets.entries()) {
    if (!name.includes('.') && name.length < LIMITS.llmToolName - 1) continue;
    context.at('targets', index, 'name').report({
      code: 'AGW0313',
      severity: 'warning',
      message: `tools of target \`${name}\` get names that providers of LLMs refuse`,
      label: `the names begin with this; allowed are letters, digits, \`_\` and \`-\`, at most ${LIMITS.llmToolName} characters`,
      help: name.includes('.')
        ? `write it without dots, as in \`${name.replaceAll('.', '-')}\``
        : 'give the target a shorter name',
    });
  }
}

function refuseDuplicates({ targets }: McpBackendConfig, context: CompileContext): void {
  const seen = new Map<string, number>();
  for (const [index, { name }] of targets.entries()) {
    const first = seen.get(name);
    seen.set(name, first ?? index);
    if (first === undefined) continue;
    context.at('targets', index, 'name').report({
      code: 'AGW0106',
      message: `two targets are called \`${name}\``,
      label: `the first is in line ${context.at('targets', first, 'name').place().configLine}`,
      help: 'give each target its own name',
    });
  }
}
