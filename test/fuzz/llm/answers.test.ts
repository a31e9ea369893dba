import { oneOf } from '../mutate.ts';
import { fuzz } from '../runner.ts';
import { ANSWERS, ERRORS } from './answers.ts';
import { llmKind } from './bench.ts';
import { judgedAsSent, judgedBody } from './clients.ts';

const STATUSES = [400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529];
/** What is no JSON object at all. */
const PAGES = ['', '<html>no</html>', 'null', '[]', '"x"', '{', '[{"error":null}]', '\0'];

fuzz('LLM answers of providers', 200, () =>
  llmKind(async (trial, lane, bench) => {
    const { random } = trial;
    const isError = random(4) === 0;
    const status = isError ? oneOf(random, STATUSES) : 200;
    const good = isError || random(20) === 0 ? ERRORS[lane.api] : ANSWERS[lane.api];
    const body = random(12) === 0 ? oneOf(random, PAGES) : trial.mutate(good);
    const type =
      random(15) === 0 ? oneOf(random, ['text/html', 'text/event-stream', 'x']) : 'application/json';
    lane.reply = { status, type, bytes: Buffer.from(body), random };
    trial.note(
      `${lane.client} client, ${lane.api} provider, guarded: ${lane.isGuarded}, HTTP ${status} ${type}`,
    );
    trial.note(body);
    const answered = await bench.call(trial, lane, false);
    trial.note(`the client got HTTP ${answered.status} ${answered.text}`);
    // A provider with the client's own format is passed on byte for byte.
    if (lane.api === lane.client && answered.text === body && answered.status === status) return;
    const isAsSent = lane.api === lane.client && answered.status === status;
    const ending = isAsSent ? judgedAsSent(answered) : judgedBody(lane.client, answered);
    if (ending === 'failed') await bench.explained(trial, lane);
  }),
);
