import { describe, expect, test } from 'vitest';
import { APIS, type Api, gatewayTo } from '../../kit/llm-answers.ts';
import { callOf, WIRE } from '../../kit/llm-formats.ts';
import { answering, llmGateway, llmProvider, streaming } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import type { Answer, HttpUpstream } from '../../kit/upstream.ts';

// Providers repeat the key of a call in errors: nothing that leaves the gateway may have it, in any encoding.

type Format = keyof typeof WIRE;

const KEY = 'sk-key/with+"signs"?';
const ENCODED = encodeURIComponent(KEY);
const FORMS = [
  KEY,
  Buffer.from(KEY).toString('base64').replace(/=+$/, ''),
  Buffer.from(KEY).toString('base64url'),
  ENCODED,
  ENCODED.replace(/%../g, (code) => code.toLowerCase()),
];
const MESSAGE = `bad key ${FORMS.join(' ')}`;
const ERROR = {
  error: { message: MESSAGE, type: 'invalid_request_error', code: KEY, status: 'INVALID_ARGUMENT' },
};

/** Calls the gateway and returns what client, log, access log and trace have of the call. */
async function shownBy(
  provider: HttpUpstream,
  client: Format,
  { api, isStream, key = KEY }: { api?: Api; isStream?: boolean; key?: string } = {},
): Promise<Record<string, string>> {
  const parts = { params: { apiKey: key }, options: { level: 'trace' } };
  await using gate = await (api === undefined
    ? llmGateway(provider, parts)
    : gatewayTo(provider, api, parts));
  const { path, body } = callOf(client, 'm', isStream);
  let answered = '';
  const events = await recorded(gate, async () => {
    const reply = await send(gate.url + path, { method: 'POST', body });
    answered = `${reply.status} ${JSON.stringify(reply.headers)} ${reply.text}`;
  });
  await gate.accessLine(1);
  const trace = events.map(({ message }) =>
    'body' in message ? Buffer.from(String(message.body), 'base64').toString() : JSON.stringify(message),
  );
  return {
    client: answered,
    log: gate.log.join(''),
    access: gate.accessLog.join(''),
    trace: trace.join('\n'),
  };
}

/** Which form of the key is found where. */
const leaks = (shown: Record<string, string>): string[] =>
  Object.entries(shown).flatMap(([where, text]) =>
    FORMS.filter((form) => text.includes(form) || text.includes(JSON.stringify(form).slice(1, -1))).map(
      (form) => `${where}: ${form}`,
    ),
  );

const FORMATS = Object.keys(WIRE) as Format[];
const TRANSLATED = (['completions', 'messages', 'responses', 'generateContent'] as const).flatMap((client) =>
  APIS.filter((api) => api !== client).map((api) => [client, api] as const),
);

describe('a key that a provider echoes in an error', () => {
  test.each(FORMATS)('reaches neither client nor log nor trace of a call of %s', async (client) => {
    await using provider = await llmProvider(answering(JSON.stringify(ERROR), 400));
    const shown = await shownBy(provider, client);
    expect(shown['client']).toMatch(/^400 .*bad key <redacted>/);
    expect(shown['trace']).toContain('bad key <redacted>');
    expect(shown['access']).toContain('http.status=400');
    expect(leaks(shown)).toEqual([]);
  });

  test.each(TRANSLATED)(
    'reaches neither client nor log nor trace of a call of %s that is translated to %s',
    async (client, api) => {
      await using provider = await llmProvider(answering(JSON.stringify(ERROR), 400));
      const shown = await shownBy(provider, client, { api });
      expect(shown['client']).toContain('bad key <redacted>');
      expect(leaks(shown)).toEqual([]);
    },
  );
});

describe('a key that a provider echoes in an error event of a stream', () => {
  const event = (format: Format): string => {
    const message = { message: MESSAGE, code: 'server_error' };
    if (format === 'messages')
      return `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', ...message } })}\n\n`;
    if (format === 'responses')
      return `event: error\ndata: ${JSON.stringify({ type: 'error', ...message, param: null })}\n\n`;
    return `data: ${JSON.stringify({ error: message })}\n\n`;
  };
  const failing = (format: Format): Answer =>
    streaming((response) => {
      const whole = WIRE[format].stream?.({ model: 'm', text: 'One two three', usage: undefined }) ?? '';
      const begun = whole
        .split(/(?<=\n\n)/)
        .slice(0, 3)
        .join('');
      return response.end(begun + event(format));
    });

  test.each(FORMATS.filter((format) => WIRE[format].stream !== undefined))(
    'reaches neither client nor log nor trace of a call of %s',
    async (client) => {
      await using provider = await llmProvider(failing(client));
      const shown = await shownBy(provider, client, { isStream: true });
      expect(shown['client']).toContain('bad key <redacted>');
      expect(leaks(shown)).toEqual([]);
    },
  );

  test.each(TRANSLATED)(
    'reaches neither client nor log nor trace of a call of %s that is translated to %s',
    async (client, api) => {
      await using provider = await llmProvider(failing(api));
      const shown = await shownBy(provider, client, { api, isStream: true });
      expect(shown['client']).toContain('bad key <redacted>');
      expect(leaks(shown)).toEqual([]);
    },
  );
});

describe('a key that a provider echoes in an answer', () => {
  const answers = (format: Format, text: string, isStream: boolean): Answer => {
    const answer = { model: 'm', text, usage: undefined };
    return isStream
      ? streaming((response) => response.end(WIRE[format].stream?.(answer)))
      : answering(JSON.stringify(WIRE[format].body?.(answer)));
  };
  test.each(
    [...APIS.map((api) => [api, api] as const), ...TRANSLATED].flatMap((pair) =>
      [false, true].map((isStream) => [...pair, isStream] as const),
    ),
  )('reaches no client of %s, from %s, stream: %s', async (client, api, isStream) => {
    const key = 'sk-echoed-0123456789abcdef';
    await using provider = await llmProvider(answers(api, `you sent Bearer ${key}!`, isStream));
    const { client: seen = '' } = await shownBy(provider, client, {
      key,
      isStream,
      ...(api === client ? {} : { api }),
    });
    expect(seen).toMatch(/^200 .*<redacted>/s);
    expect(seen).not.toContain(key);
  });

  test.each([...APIS.map((api) => [api, api] as const), ...TRANSLATED])(
    'reaches no client of %s, from %s, in pieces of a stream',
    async (client, api) => {
      const key = 'sk-echoed-0123456789abcdef';
      const pieces = key.match(/.{1,3}/g) ?? [];
      // Each word of the text is an event. The first has a beginning of the key that goes on otherwise.
      const text = `you sk-echo-0 sent ${pieces.join(' ')} and ${pieces[0]} ${pieces[1]} .`;
      const stream = WIRE[api].stream?.({ model: 'm', text, usage: undefined }) ?? '';
      await using provider = await llmProvider(
        streaming((response) =>
          response.end(pieces.reduce((all, each) => all.replaceAll(`"${each} "`, `"${each}"`), stream)),
        ),
      );
      const { client: seen = '' } = await shownBy(provider, client, {
        key,
        isStream: true,
        ...(api === client ? {} : { api }),
      });
      const texts = [...seen.matchAll(/"(?:content|delta|text)":"((?:[^"\\\\]|\\\\.)*)"/g)].map(
        ([, each]) => each,
      );
      expect(texts.join('')).toContain('you sk-echo-0 sent sk-ech<redacted>and sk-ech.');
    },
  );

  test('reaches no client in an answer that is too long to wait for', async () => {
    const key = 'sk-echoed-0123456789abcdef';
    const answer = {
      model: 'm',
      text: `${'word '.repeat(40_000)}Bearer ${key}! ${'x'.repeat(70_000)}sk-ech`,
      usage: undefined,
    };
    const body = JSON.stringify(WIRE.completions.body?.(answer));
    const at = body.indexOf(key) + 9;
    await using provider = await llmProvider((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.write(body.slice(0, at), () => response.end(body.slice(at)));
    });
    const { client: seen = '' } = await shownBy(provider, 'completions', { key });
    expect(seen).toMatch(/^200 .*Bearer <redacted>\*+! x+sk-ech"/s);
    expect(seen).not.toContain(key);
  });

  test('is left where it may be a word: ollama', async () => {
    await using provider = await llmProvider(answers('completions', 'Try ollama pull.', false));
    for (const client of ['completions', 'messages'] as const) {
      const { client: seen } = await shownBy(provider, client, { key: 'ollama', api: 'completions' });
      expect(seen).toContain('Try ollama pull.');
    }
  });
});
