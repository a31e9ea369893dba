import { fuzz } from '../runner.ts';
import { response, resultOf } from './answers.ts';
import { mcpKind, paramsOf } from './bench.ts';
import { modernCaller, sessionCaller } from './caller.ts';

fuzz('MCP initialize and discover results of targets', 60, () =>
  mcpKind(
    async (trial, lane, bench) => {
      const { random } = trial;
      const method = lane.server === 'modern' ? 'server/discover' : 'initialize';
      const good = resultOf(lane.server, { method, params: { protocolVersion: '2025-11-25' } }) ?? {};
      const text = trial.mutate(response({ result: good }));
      trial.note(`${lane.transport} ${lane.server} for ${lane.client} (${lane.targets})`);
      trial.note(text);
      const isOpenEnded = lane.transport === 'stdio' || lane.transport === 'sse';
      const after = isOpenEnded ? [JSON.stringify(response({ result: good }))] : [];
      const isBoth = random(5) === 0;
      for (const [index, peer] of lane.peers.entries())
        peer.play = (message) =>
          message.method === method && (index === 0 || isBoth)
            ? { texts: [text, ...after], random }
            : undefined;
      if (lane.client === 'modern') {
        // A caller of its own: with its name, nothing that is known of others is used.
        const answer = await modernCaller(lane.url, trial.name).request('tools/list', undefined, trial.name);
        await bench.explained(trial, lane, answer);
      } else {
        const { first, caller } = await sessionCaller(lane.url, trial.name);
        await bench.explained(trial, lane, first);
        if (caller !== undefined) {
          const name = `${trial.name}-call`;
          const answer = await caller.request('tools/call', paramsOf('tools/call', lane), name);
          await bench.explained({ ...trial, name }, lane, answer);
          await caller.close();
        }
      }
      for (const peer of lane.peers) peer.play = undefined;
    },
    // A process of a client without a session stays for the next one, and each trial has a client of its own.
    ({ transport, client }) => transport !== 'stdio' || client === 'sessions',
  ),
);
