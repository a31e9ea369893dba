import { oneOf } from '../mutate.ts';
import { fuzz } from '../runner.ts';
import { NOTIFICATIONS, REQUESTS, response, resultOf } from './answers.ts';
import { mcpKind, paramsOf } from './bench.ts';

fuzz('MCP messages of targets', 150, () =>
  mcpKind(
    async (trial, lane, bench) => {
      const { random } = trial;
      const caller = await bench.callerOf(lane);
      const texts = Array.from({ length: 1 + random(3) }, () =>
        trial.mutate(oneOf(random, random(2) === 0 ? NOTIFICATIONS : REQUESTS)),
      );
      const good = JSON.stringify(
        response({ result: resultOf(lane.server, { method: 'tools/call' }) ?? {} }),
      );
      trial.note(`${lane.transport} ${lane.server} for ${lane.client} (${lane.targets})`);
      trial.note(texts.join('\n  '));
      const [peer] = lane.peers;
      if (peer !== undefined)
        peer.play = ({ method }) =>
          method === 'tools/call' ? { texts: [...texts, good], random } : undefined;
      const answer = await caller.request('tools/call', paramsOf('tools/call', lane), trial.name, () =>
        // The answer of a client is foreign, too.
        ({
          result: { action: 'accept', role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' },
        }),
      );
      if (peer !== undefined) peer.play = undefined;
      if (answer.status === 404) lane.caller = undefined;
      await bench.explained(trial, lane, answer);
    },
    ({ transport }) => transport !== 'json',
  ),
);
