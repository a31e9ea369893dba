import { join } from 'node:path';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { logReader, must, TRIAL_FIELD } from '../judge.ts';
import type { Kind, Trial } from '../runner.ts';
import type { Era } from './answers.ts';
import { type Caller, type Heard, modernCaller, sessionCaller } from './caller.ts';
import { mcpPeers, type Peer, type Transport } from './peer.ts';

/** One route with its own fake targets. */
export interface McpLane {
  readonly transport: Transport;
  /** Era of the targets. */
  readonly server: Era;
  readonly client: Era;
  /** One for a single target, two for federated ones. */
  readonly peers: readonly Peer[];
  readonly url: string;
  /** Starts of names and URIs of the first target, as clients see them. */
  readonly prefix: { readonly name: string; readonly uri: string };
  /** Names of the targets. */
  readonly targets: readonly string[];
  /** The caller of the lane, and how often it was used. */
  caller: Caller | undefined;
  uses: number;
}

type Shape = readonly [Transport, server: Era, client: Era, targets: 1 | 2, guarded: boolean];

const SHAPES: readonly Shape[] = [
  ['json', 'sessions', 'sessions', 1, false],
  ['events', 'sessions', 'sessions', 2, true],
  ['stdio', 'sessions', 'sessions', 1, true],
  ['sse', 'sessions', 'sessions', 1, false],
  ['json', 'modern', 'modern', 1, true],
  ['events', 'modern', 'modern', 2, false],
  ['stdio', 'modern', 'modern', 1, false],
  ['json', 'sessions', 'modern', 2, false],
  ['events', 'sessions', 'modern', 1, true],
  ['stdio', 'sessions', 'modern', 2, true],
  ['sse', 'sessions', 'modern', 1, false],
  ['json', 'modern', 'sessions', 2, true],
  ['events', 'modern', 'sessions', 1, false],
  ['stdio', 'modern', 'sessions', 1, true],
  ['sse', 'sessions', 'sessions', 2, true],
  ['stdio', 'sessions', 'sessions', 2, false],
  ['json', 'sessions', 'sessions', 2, true],
  ['events', 'sessions', 'sessions', 1, false],
];

/** Waits of the gateway for targets, so that a trial without an answer ends in time, also on a busy machine. */
const LIMITS = {
  discoverTimeout: 8_000,
  initializeTimeout: 10_000,
  slowTargetStartWait: 4_000,
  targetResponseWait: 8_000,
  listGracePeriod: 2_000,
  sessionStartTimeout: 12_000,
  listPageTimeout: 8_000,
  heldResponseTimeout: 300,
  firstStreamWait: 50,
  inputTimeout: 5_000,
  evictionIdle: 100,
  relistInterval: 100,
};

const MASKED = { 'tools/call': 'full', 'prompts/get': 'full', 'resources/read': 'full' };

/** Everything that reads messages of targets. */
const GUARDED = {
  mcpAuthorization: {
    rules: [
      'mcp.tool.name != "zzz"',
      'mcp.prompt.name != "zzz"',
      'mcp.resource.name != "zzz"',
      'mcp.task.name != "zzz"',
    ],
  },
  mcpGuardrails: { processors: [{ kind: 'regex', rules: [{ builtin: 'email' }], methods: MASKED }] },
};

const FIELDS = {
  ...TRIAL_FIELD,
  arguments: 'mcp.tool.arguments',
  result: 'mcp.tool.result',
  text: 'mcp.tool.result.content[0].text',
  problem: 'mcp.tool.error.message',
};

type Run = (trial: Trial, lane: McpLane, bench: McpBench) => Promise<void>;

export interface McpBench {
  /** The caller of a lane; a new one after some trials, or after a failure. */
  callerOf(lane: McpLane): Promise<Caller>;
  /** Fails unless the log says why a request failed, and which target it was. */
  explained(trial: Trial, lane: McpLane, answer: Heard): Promise<void>;
}

/** A gateway with routes to targets of every transport and era, single and federated, with and without policies. */
export async function mcpKind(
  run: Run,
  uses: (shape: { transport: Transport; client: Era; server: Era }) => boolean = () => true,
): Promise<Kind<McpLane>> {
  const folder = await temporaryFolder();
  const peers = await mcpPeers();
  const shapes = SHAPES.filter(([transport, server, client]) => uses({ transport, server, client }));
  const drafts = shapes.map(([transport, server, client, count, guarded], index) => {
    const targets = count === 1 ? [`t${index}`] : [`t${index}`, `u${index}`];
    return {
      transport,
      server,
      client,
      targets,
      guarded,
      peers: targets.map((name) => peers.add(name, transport, server)),
    };
  });
  const routes = drafts.map(({ guarded, peers: own }, index) => ({
    name: `r${index}`,
    matches: [{ path: { pathPrefix: `/${index}` } }],
    policies: {
      timeout: { requestTimeout: '15s', backendRequestTimeout: '12s' },
      ...(guarded && GUARDED),
    },
    backends: [
      {
        mcp: {
          targets: own.map(({ target }) => target),
          ...(guarded && { toolPinning: { mode: 'warn', file: join(folder.path, `${index}.yaml`) } }),
        },
      },
    ],
  }));
  const yaml = JSON.stringify({
    config: {
      adminAddr: 'off',
      connectionTerminationDeadline: '100ms',
      mcp: { maxChildren: 100, sessionTtl: '10s' },
    },
    frontendPolicies: { accessLog: { add: FIELDS } },
    gateways: { default: { port: 0, routes } },
  });
  const gate = await gateway(yaml, { limits: LIMITS, folder: folder.path });
  const log = logReader(gate);
  const lanes = drafts.map(({ targets, ...draft }, index): McpLane => {
    const isSingle = targets.length === 1;
    const prefix = { name: isSingle ? '' : `${targets[0]}_`, uri: isSingle ? '' : `${targets[0]}+` };
    return { ...draft, targets, prefix, url: `${gate.url}/${index}`, caller: undefined, uses: 0 };
  });
  const bench: McpBench = {
    async callerOf(lane) {
      lane.uses += 1;
      if (lane.caller !== undefined && lane.uses % 16 !== 0) return lane.caller;
      const isFit = lane.caller !== undefined && lane.uses % 128 !== 0 && (await isServed(lane, lane.caller));
      if (!isFit) {
        await lane.caller?.close();
        lane.caller = await openCaller(lane);
        const { response, status } = await lane.caller.request(
          'tools/call',
          paramsOf('tools/call', lane),
          'control',
        );
        must(Array.isArray(response?.result?.content), 'a new caller is not served', { status, response });
      }
      return lane.caller as Caller;
    },
    async explained(trial, lane, { isFailure, response }) {
      if (!isFailure) return;
      const lines = await log.lines(trial.name, 1);
      const line = lines.map((fields) => JSON.stringify(fields)).join('\n');
      const reasons = lines.map(
        (fields) => fields['mcp.error.message'] ?? fields['error'] ?? fields['error.type'] ?? '',
      );
      must(
        reasons.some((reason) => reason !== '') || response?.error?.message === '',
        'no reason in the log',
        line,
      );
      must(
        // A merged list has no target of its own; then the log has a line for each that failed.
        lane.targets.some((name) => line.includes(name) || log.said(`target="${name}"`)),
        'the log does not name the target',
        line,
      );
    },
  };
  return {
    lanes,
    run: (trial, lane) => run(trial, lane, bench),
    internalErrors: log.internalErrors,
    internalError: log.internalError,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(lanes.map(({ caller }) => caller?.close()));
      await gate.close();
      await peers[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

async function openCaller(lane: McpLane): Promise<Caller> {
  if (lane.client === 'modern') return modernCaller(lane.url);
  const { caller, first } = await sessionCaller(lane.url, 'open');
  must(caller !== undefined, 'no session', first);
  return caller;
}

/** Whether a good call through a caller has a good answer. */
async function isServed(lane: McpLane, caller: Caller): Promise<boolean> {
  const { response, isFailure } = await caller.request('tools/call', paramsOf('tools/call', lane), 'control');
  return !isFailure && Array.isArray(response.result.content);
}

/** Parameters of a request to the first target of a lane. */
export function paramsOf(method: string, { prefix }: Pick<McpLane, 'prefix'>): object | undefined {
  switch (method) {
    case 'tools/call':
      return { name: `${prefix.name}t`, arguments: { a: 'ann@example.com' } };
    case 'prompts/get':
      return { name: `${prefix.name}p`, arguments: { x: 'y' } };
    case 'resources/read':
    case 'resources/subscribe':
      return { uri: `${prefix.uri}file:///x` };
    case 'completion/complete':
      return { ref: { type: 'ref/prompt', name: `${prefix.name}p` }, argument: { name: 'x', value: 'a' } };
    case 'logging/setLevel':
      return { level: 'debug' };
    case 'tasks/get':
    case 'tasks/result':
    case 'tasks/cancel':
      return { taskId: `${prefix.uri}1` };
    default:
      return undefined;
  }
}
