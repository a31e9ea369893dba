import { fuzz } from '../runner.ts';
import { ERROR_EVENTS, EVENTS, eventBytes, type StreamEvent } from './answers.ts';
import { llmKind } from './bench.ts';
import { judgedAsSent, judgedStream } from './clients.ts';

fuzz('LLM streams of providers', 200, () =>
  llmKind(async (trial, lane, bench) => {
    const { random } = trial;
    const { api, client } = lane;
    let events: readonly StreamEvent[] = EVENTS[api];
    const at = random(events.length);
    switch (random(10)) {
      case 0:
        // The stream breaks off.
        events = events.slice(0, at);
        break;
      case 1:
        events = [...events.slice(0, at), ERROR_EVENTS[api], ...events.slice(at)];
        break;
      case 2:
        // An event comes twice, or much later.
        events = [...events.slice(0, at), ...events.slice(at), events[at] as StreamEvent];
        break;
      default:
    }
    const isChanged = new Set([
      random(events.length || 1),
      random(3) === 0 ? random(events.length || 1) : -1,
    ]);
    const end = random(4) === 0 ? '\r\n' : '\n';
    const bytes = Buffer.concat(
      events.map(({ name, data }, index) => {
        const text = isChanged.has(index)
          ? trial.mutate(data)
          : data === '[DONE]'
            ? data
            : JSON.stringify(data);
        return eventBytes(api, name, text, end);
      }),
    );
    // Lengths and checksums of binary frames are foreign, too.
    if (api === 'converse' && bytes.length > 0 && random(6) === 0) bytes[random(bytes.length)] = random(256);
    const type = api === 'converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream';
    lane.reply = { status: 200, type, bytes, random };
    trial.note(`${client} client, ${api} provider, guarded: ${lane.isGuarded}`);
    const answered = await bench.call(trial, lane, true);
    trial.note(`the client got HTTP ${answered.status} …${answered.text.slice(-500)}`);
    if (api === client && answered.isComplete && answered.text === bytes.toString('utf8')) return;
    const ending = api === client ? judgedAsSent(answered) : judgedStream(client, answered);
    if (ending === 'failed') await bench.explained(trial, lane);
  }),
);
