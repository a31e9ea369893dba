import { oneOf } from '../mutate.ts';
import { fuzz } from '../runner.ts';
import { ERROR, INPUT_REQUIRED, NOTIFICATIONS, response, resultOf } from './answers.ts';
import { mcpKind, paramsOf } from './bench.ts';

const BOTH = [
  'tools/list',
  'tools/call',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
];
const METHODS = {
  modern: BOTH,
  sessions: [
    ...BOTH,
    'logging/setLevel',
    'resources/subscribe',
    'tasks/list',
    'tasks/get',
    'tasks/result',
    'tasks/cancel',
  ],
};
const STATUSES = [201, 202, 204, 301, 400, 401, 403, 404, 405, 429, 500, 503];
const TYPES = ['application/json; charset=utf-8', 'text/html', 'text/event-stream', 'Application/JSON', 'x'];

fuzz('MCP responses of targets', 150, () =>
  mcpKind(async (trial, lane, bench) => {
    const { random } = trial;
    const method = oneOf(random, METHODS[lane.client]);
    const caller = await bench.callerOf(lane);
    const params = paramsOf(method, lane);
    const isTask = lane.client === 'sessions' && method === 'tools/call' && random(4) === 0;
    const asked = isTask ? { ...params, task: { ttl: 1_000 } } : params;
    const good = resultOf(lane.server, { method, params: asked }) ?? {};
    const isQuestion = lane.server === 'modern' && method === 'tools/call' && random(3) === 0;
    const outcome = random(6) === 0 ? { error: ERROR } : { result: isQuestion ? INPUT_REQUIRED : good };
    const text = trial.mutate(response(outcome));
    const before = random(4) === 0 ? [JSON.stringify(oneOf(random, NOTIFICATIONS))] : [];
    // On a connection that goes on, a response without a usable id is lost; a good one that follows ends the call.
    const isOpenEnded = lane.transport === 'stdio' || lane.transport === 'sse';
    const after = isOpenEnded ? [JSON.stringify(response({ result: good }))] : [];
    const status = random(12) === 0 ? oneOf(random, STATUSES) : 200;
    const headers: Record<string, string> = random(12) === 0 ? { 'content-type': oneOf(random, TYPES) } : {};
    trial.note(`${lane.transport} ${lane.server} for ${lane.client} (${lane.targets}), ${method}: ${status}`);
    trial.note(text);
    const isBoth = random(5) === 0;
    let asks = 0;
    for (const [index, peer] of lane.peers.entries())
      peer.play = (message) => {
        if (message.method !== method || (index > 0 && !isBoth)) return undefined;
        asks += 1;
        // A server that has no end of questions is cut off; that has a test of its own.
        if (isQuestion && asks > 2) return undefined;
        return { texts: [...before, text, ...after], status, headers, random };
      };
    const answer = await caller.request(method, asked, trial.name);
    for (const peer of lane.peers) peer.play = undefined;
    if (answer.status === 404) lane.caller = undefined;
    await bench.explained(trial, lane, answer);
  }),
);
