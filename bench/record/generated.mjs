// Records as a busy gateway has them: 1,000 keys of 300 users, 12 models, 40 tools of 8 targets, 1 in 50 failed.

const MODELS = Array.from(
  { length: 12 },
  (_, index) => `acme-${['mini', 'large', 'vision'][index % 3]}-${index}`,
);
const TARGETS = ['github', 'jira', 'files', 'search', 'postgres', 'slack', 'browser', 'memory'];
const VERBS = ['read', 'write', 'list', 'search', 'delete'];
const WORDS =
  'the invoice of our customer was sent twice please check why and tell me which table has it'.split(' ');
const MONTH = 30 * 24 * 3600 * 1000;
const START = Date.now() - MONTH;

/** The same numbers for every run. */
function random(seed) {
  let state = (seed * 2654435761) >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** `count` records from number `first` of `total`, which are spread over 30 days. */
export function generated(first, count, total, hasPayload) {
  return Array.from({ length: count }, (_, index) => {
    const number = first + index;
    const record = recordOf(number, START + Math.floor((number / total) * MONTH));
    return { record, payload: hasPayload ? payloadOf(number) : undefined, isSummed: false, size: 0 };
  });
}

function recordOf(number, time) {
  const pick = random(number + 1);
  const isTool = pick(3) === 0;
  const hasFailed = pick(50) === 0;
  const key = pick(1000);
  // A key uses two models and three tools.
  const model = MODELS[(key + pick(2)) % MODELS.length];
  const target = TARGETS[key % TARGETS.length];
  const own = isTool
    ? {
        protocol: 'mcp',
        operation: 'tools/call',
        route: 'default/tools',
        path: '/mcp',
        target,
        tool: `${VERBS[pick(3)]}_${target}`,
        session: `s${pick(5000)}`,
      }
    : {
        protocol: 'llm',
        operation: 'chat',
        route: 'internal/llm:request',
        path: '/v1/chat/completions',
        provider: 'openai',
        model,
        usedModel: `${model}-2026-08`,
        streamed: pick(2) === 0,
        firstToken: 200_000 + pick(400_000),
        input: pick(4000),
        output: pick(900),
        cost: pick(30_000_000),
      };
  return {
    ...EMPTY,
    ...own,
    time,
    duration: 1000 + pick(5_000_000),
    status: hasFailed ? 529 : 200,
    error: hasFailed ? 'the provider responded with an error: overloaded_error' : null,
    reason: hasFailed ? 'UpstreamFailure' : null,
    caller: `key-${key}`,
    user: `user-${key % 300}`,
    group: `team-${key % 12}`,
    client: `10.0.${pick(4)}.${pick(250)}`,
    agent: 'OpenAI/Python 2.1.0',
  };
}

const EMPTY = Object.fromEntries(
  'listener route path error reason cut caller user group client agent session traceId provider model usedModel target tool firstToken input output cached cacheWrite reasoning estimated cost added'
    .split(' ')
    .map((name) => [name, null]),
);
Object.assign(EMPTY, { listener: 'llm', streamed: false });

function payloadOf(number) {
  const pick = random(number + 7);
  const text = (length) => Array.from({ length }, () => WORDS[pick(WORDS.length)]).join(' ');
  const [asked, answered] = [`${text(250)} case${number}`, text(150)];
  return {
    request: JSON.stringify({ messages: [{ role: 'user', content: asked }] }),
    response: JSON.stringify({ texts: [answered], toolCalls: [] }),
    words: `messages role user content ${asked} texts ${answered} toolCalls`,
  };
}

export const EVERYTHING = { from: 0, to: START + 2 * MONTH, equal: {}, limit: 50 };

const DAY = 24 * 3600 * 1000;

export const SEARCHES = {
  'newest 50': {},
  'one model': { equal: { model: MODELS[3] } },
  'one key': { equal: { key: 'key-77' } },
  'a key that made no request': { equal: { key: 'nobody' } },
  'one key and one model': { equal: { key: 'key-77', model: MODELS[3] } },
  'a model and a tool: no record has both': { equal: { model: MODELS[3], tool: 'read_jira' } },
  'failed requests': { status: [500, 599] },
  'a status that no request has': { status: [418, 418] },
  'a day three weeks ago': { from: START + 8 * DAY, to: START + 9 * DAY },
  'a user on that day': { from: START + 8 * DAY, to: START + 9 * DAY, equal: { user: 'user-5' } },
  'a group (no index) that made no request': { equal: { group: 'nobody' } },
  'a word of most payloads': { text: 'invoice' },
  'a word of one payload': { text: 'case1234' },
  'a word of no payload': { text: 'zebra' },
  'the words of an error': { text: 'overloaded error' },
  'two words and a user': { text: 'invoice customer', equal: { user: 'user-5' } },
};
