import { rebindingHeader, rebindingMessage } from '../../core/dns-rebinding.ts';
import { AppError } from '../../core/errors.ts';
import { membersOf, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Bound } from '../kernel/inspection.ts';
import type { Backend, RequestContext } from '../kernel/request/request-context.ts';
import { withoutPort } from '../kernel/routing/router.ts';
import { sharedStore } from '../kernel/shared-store.ts';
import { backendTlsSchema } from '../transport/tls/backend-tls.ts';
import { hasPrefixes, type McpBackendConfig, mcpBackendSchema } from './backend-config.ts';
import { compileBundles } from './bundles/bundles.ts';
import { handleLegacySse, isLegacySse } from './client/legacy-sse.ts';
import { type Placed, workerFor } from './client/placement.ts';
import { handleHttp } from './client/streamable-http.ts';
import { compileTarget } from './compile-target.ts';
import type { Target } from './connection/target.ts';
import { guardByPolicies } from './guardrails/policy-hooks.ts';
import { describeMcp, dumpMcp, viewMcp } from './inspect.ts';
import { compileToolView } from './names/tool-view.ts';
import { UnmatchedSettings } from './names/unmatched-settings.ts';
import { probeTargets } from './probe.ts';
import { mcpProcessOf } from './process.ts';
import { mcpHeaderFields } from './protocol/protocol.ts';
import { SessionStore } from './session/session-store.ts';
import { targetKinds } from './targets/index.ts';
import { toolNamesOf } from './tool-names.ts';
import { compileToolPinning } from './tool-pinning/compile.ts';
import { ToolSearch } from './tool-search/tool-search.ts';

export const mcp = defineBackend({
  key: 'mcp',
  schema: mcpBackendSchema,
  api: 'mcp',
  protocolFields: mcpHeaderFields,
  countsTokens: false,
  connectsTo: (config) => ({
    kind: 'servers',
    getHeaders: config.targets.some(({ stdio }) => stdio === undefined),
    haveTls: config.targets.every(
      ({ stdio, policies }) => stdio !== undefined || policies?.backendTLS !== undefined,
    ),
    prefixes: hasPrefixes(config) ? config.targets.map(({ name }) => name) : [],
  }),
  withTls,
  describe: describeMcp,
  partNames: ({ bundles }) => bundles.map(({ name }) => name),
  view: viewMcp,
  dump: dumpMcp,
  probes: probeTargets,
  // Whatever its servers may do, with the files and credentials that they have.
  exposes: () => 'use the MCP servers of this route',
  open(config, context, name) {
    const isStateless = config.statefulMode === 'stateless';
    const pinsOf = compileToolPinning(config.toolPinning, context.at('toolPinning'));
    const targets = config.targets.map((each, index): Target => {
      const at = context.at('targets', index);
      const target = compileTarget(isStateless ? withSharedProcess(each) : each, at);
      const tools = compileToolView(each.tools, at.at('tools'));
      return Object.assign(target, { tools, pins: pinsOf(target) });
    });
    reportDuplicates(config, context);
    const prefixed = hasPrefixes(config);
    if (prefixed) warnAboutPrefixes(config, context);
    const bundles = compileBundles(config.bundles, { targets, prefixed }, context.at('bundles'));
    const limitsResults = targets.some(({ tools }) => tools?.maxResultTokens !== undefined);
    const names = toolNamesOf(config);
    const mcpProcess = mcpProcessOf(context.settings);
    if (limitsResults && isStateless) warnAboutRests(config, context);
    const sessions = new SessionStore(
      {
        backend: name,
        targets,
        prefixed,
        failClosed: config.failureMode === 'failClosed',
        isStateless,
        unmatched:
          names.length === 0
            ? undefined
            : new UnmatchedSettings(
                names,
                targets.map((target) => target.name),
              ),
        toolSearch: config.toolSearch && new ToolSearch(config.toolSearch),
        limitsResults,
        results: limitsResults && !isStateless ? mcpProcess.results : undefined,
        log: context.log,
        limits: context.settings.limits,
      },
      mcpProcess,
      sharedStore.get(context.settings),
    );
    warnAboutOwnKey(config, targets, context);
    const placed = placementOf(config, name);
    context.inspection.addBackend(context.path, () => sessions.state());
    context.inspection.bounds.push(...boundsOf(sessions, context));
    if (limitsResults) context.inspection.bounds.push(...resultBoundsOf(sessions, context));
    const backend: Backend = {
      handle(ctx) {
        if (config.dnsRebindingProtection !== false)
          checkHostAndOrigin(ctx, context.hostnames, config.dnsRebindingProtection === true);
        bundles?.apply(ctx);
        guardByPolicies(ctx);
        return isLegacySse(ctx) ? handleLegacySse(ctx, sessions) : handleHttp(ctx, sessions);
      },
      workerFor: (ctx, workers) => workerFor(ctx, workers, placed),
      served: () => sessions.served(),
      drain: () => sessions.drain(),
      takeOver(previous) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only a key, and unknown for any other object
        const replaced = stores.get(previous as Backend);
        if (replaced !== undefined) sessions.takeOver(replaced);
        return replaced !== undefined;
      },
      retired: () => sessions.retired(),
      close: () => sessions.close(),
    };
    stores.set(backend, sessions);
    return backend;
  },
});

/**
 * Protects an MCP backend from DNS rebinding; an invalid Origin is answered with status 403.
 *
 * @param allowedHosts Host names that the configuration allows.
 * @param always Checks connections on other addresses than loopback ones too.
 * @throws AppError `host_not_allowed`
 */
function checkHostAndOrigin(ctx: RequestContext, allowedHosts: ReadonlySet<string>, always: boolean): void {
  const { localAddress } = ctx.client.local;
  const origin = ctx.headers.get('origin');
  const header = rebindingHeader({ localAddress, host: withoutPort(ctx.host), origin }, allowedHosts, always);
  if (header === undefined) return;
  const value = header === 'Host' ? ctx.host : (origin ?? '');
  throw new AppError('host_not_allowed', {
    message: rebindingMessage(header, 'a configured hostname (dnsRebindingProtection of the mcp backend)'),
    detail: `${header}: ${value.slice(0, 100)}`,
  });
}

function placementOf({ targets, statefulMode }: McpBackendConfig, backend: string): Placed {
  const processes = targets.flatMap(({ stdio }) => stdio ?? []);
  const hasProcesses = processes.length > 0;
  const sharesProcess =
    processes.some(({ shared }) => shared) || (hasProcesses && statefulMode === 'stateless');
  return { backend, hasProcesses, sharesProcess };
}

/** Session store by backend, for the backend that replaces it after a reload. */
const stores = new WeakMap<Backend, SessionStore>();

/** Limits of one MCP backend and their use. For limits per session, the highest value of any session is reported. */
function boundsOf(sessions: SessionStore, { path, settings }: CompileContext): Bound[] {
  const at = path.join('.');
  return [
    { name: 'mcp.sessions', at, max: mcpProcessOf(settings).maxSessions, used: () => sessions.total },
    {
      name: 'mcp.endedSessions',
      at,
      max: LIMITS.endedSessions,
      keepsLatest: true,
      used: () => sessions.ended,
    },
    { name: 'mcp.keptStarts', at, max: settings.limits.keptStarts, used: () => sessions.starting.size },
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

/** The same for results that are kept. */
function resultBoundsOf(sessions: SessionStore, { path, settings }: CompileContext): Bound[] {
  const at = path.join('.');
  const { results } = mcpProcessOf(settings);
  const { keptResults, keptResultBytes } = settings.limits;
  const keepsLatest = true;
  const fullest = (figure: 'count' | 'bytes'): number =>
    sessions.fullest((session) => session.keptResults?.[figure] ?? 0);
  return [
    { name: 'mcp.session.keptResults', at, max: keptResults, keepsLatest, used: () => fullest('count') },
    {
      name: 'mcp.session.keptResultBytes',
      at,
      max: keptResultBytes,
      keepsLatest,
      used: () => fullest('bytes'),
    },
    { name: 'mcp.keptResultBytes', at, max: results.maxBytes, keepsLatest, used: () => results.bytes },
  ];
}

/** Servers whose URL says `http:` keep it, and so does one that has its own settings. */
function withTls(config: McpBackendConfig, backendTLS: unknown): McpBackendConfig {
  const found = backendTlsSchema.safeParse(backendTLS);
  if (!found.success) return config;
  const targets = config.targets.map((target) => {
    const { policies } = target;
    const isPlain = targetKinds.some(({ key }) => /^http:/i.test(textIn(membersOf(target[key])['host'])));
    if (target.stdio !== undefined || isPlain || policies?.backendTLS !== undefined) return target;
    return { ...target, policies: { ...policies, backendTLS: found.data } };
  });
  return { ...config, targets };
}

/** Otherwise each request would start a process of its own. */
function withSharedProcess(target: McpBackendConfig['targets'][number]): typeof target {
  const { stdio } = target;
  if (stdio === undefined) return target;
  return {
    ...target,
    stdio: { ...stdio, shared: true, idleTimeout: stdio.idleTimeout ?? LIMITS.statelessIdle },
  };
}

/** Without sessions, nothing keeps what is cut off. */
function warnAboutRests({ targets }: McpBackendConfig, context: CompileContext): void {
  for (const [index, { tools }] of targets.entries())
    if (tools?.maxResultTokens !== undefined)
      context.at('targets', index, 'tools', 'maxResultTokens').report({
        code: 'AGW0303',
        atKey: true,
        message: 'with `statefulMode: stateless`, the rest of a result over `maxResultTokens` is lost',
        label: 'clients get no sessions, which would keep it for them',
        help: 'remove `statefulMode: stateless`, or let tools return less',
      });
}

/** Without a key of their own, replicas cannot read each other's session ids. */
function warnAboutOwnKey(
  { statefulMode }: McpBackendConfig,
  targets: readonly Target[],
  { settings, ...context }: CompileContext,
): void {
  if (sharedStore.get(settings) === undefined || mcpProcessOf(settings).isKeyConfigured) return;
  if (statefulMode === 'stateless' || !targets.every(({ resumable }) => resumable)) return;
  context.report({
    code: 'AGW0305',
    atKey: true,
    message: 'sessions cannot continue at other gateways, because `config.session.key` is not set',
    help: 'set `config.session.key` to the same value for all gateways of `config.shared`, such as the output of `openssl rand -hex 32`',
  });
}

/** LLM providers accept tool names of `[a-zA-Z0-9_-]{1,64}` (OpenAI, Anthropic), so a prefix must be valid and short. */
function warnAboutPrefixes({ targets }: McpBackendConfig, context: CompileContext): void {
  for (const [index, { name }] of targets.entries()) {
    if (!name.includes('.') && name.length < LIMITS.llmToolName - 1) continue;
    context.at('targets', index, 'name').report({
      code: 'AGW0313',
      message: `tools of target \`${name}\` get names that LLM providers reject`,
      label: `prefix of the tool names, which may contain letters, digits, \`_\` and \`-\`, at most ${LIMITS.llmToolName} characters`,
      help: name.includes('.')
        ? `write it without dots, as in \`${name.replaceAll('.', '-')}\``
        : 'give the target a shorter name',
    });
  }
}

function reportDuplicates({ targets }: McpBackendConfig, context: CompileContext): void {
  const seen = new Map<string, number>();
  for (const [index, { name }] of targets.entries()) {
    const first = seen.get(name);
    seen.set(name, first ?? index);
    if (first === undefined) continue;
    context.at('targets', index, 'name').report({
      code: 'AGW0106',
      message: `two targets are named \`${name}\``,
      label: `the first one is on line ${context.at('targets', first, 'name').place().configLine}`,
      help: 'give each target its own name',
    });
  }
}
