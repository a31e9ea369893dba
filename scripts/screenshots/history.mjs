// Requests of a working day, for pictures of charts: a gateway that has just started has none to show.

const TOOLS = [
  ['files', 'read_file', 14],
  ['files', 'search_files', 30],
  ['github', 'create_issue', 420],
  ['github', 'list_pull_requests', 260],
  ['everything', 'echo', 4],
];
const MODELS = [
  ['anthropic', 'claude-sonnet-4', 2400, 3e-6, 15e-6],
  ['openai', 'gpt-4o-mini', 900, 0.15e-6, 0.6e-6],
];

/** Always the same numbers, so that pictures of two versions can be compared. */
function random(seed) {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

/** Real requests follow: a machine under load may need this long to send them. In ms. */
const NEWEST = 60_000;

/** @param now ms since 1970; the newest request is a minute older */
export function history(now, length = 900) {
  const chance = random(7);
  const entries = [];
  for (let at = now - 14.5 * 60_000; entries.length < length; at += chance() * 1900) {
    if (at > now - NEWEST) break;
    entries.push({ time: new Date(at).toISOString(), fields: chance() < 0.6 ? tool(chance) : call(chance) });
  }
  return entries.map((entry, index) => ({ id: index + 1, ...entry }));
}

const CALLERS = ['ann-laptop', 'support-agent', 'ci-runner'];

function base(path, status, took) {
  return {
    gateway: 'default',
    listener: 'default',
    route: path === '/mcp' ? 'tools' : 'models',
    'caller.key': CALLERS[Math.floor(took) % CALLERS.length],
    'src.addr': '10.1.4.17:53122',
    'http.method': 'POST',
    'http.host': 'gateway.example.com',
    'http.path': path,
    'http.version': 'HTTP/1.1',
    'http.status': status,
    protocol: path === '/mcp' ? 'mcp' : 'llm',
    duration: `${Math.round(took)}ms`,
  };
}

function tool(chance) {
  const [target, name, took] = TOOLS[Math.floor(chance() * TOOLS.length)];
  const isBad = target === 'github' && chance() < 0.12;
  return {
    ...base('/mcp', 200, took * (0.5 + chance() * 1.5)),
    'mcp.method.name': 'tools/call',
    'mcp.target': target,
    'gen_ai.tool.name': name,
    ...(isBad ? { error: 'the tool reported an error', 'mcp.tool.error': true } : {}),
  };
}

function call(chance) {
  const [provider, model, took, input, output] = MODELS[Math.floor(chance() * MODELS.length)];
  const status = chance() < 0.05 ? 429 : chance() < 0.03 ? 503 : 200;
  const [read, written] = [Math.round(400 + chance() * 6000), Math.round(50 + chance() * 900)];
  return {
    ...base('/v1/chat/completions', status, took * (0.4 + chance() * 1.8)),
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': provider,
    'gen_ai.request.model': model,
    'gen_ai.response.model': model,
    ...(status === 200
      ? {
          'gen_ai.usage.input_tokens': read,
          'gen_ai.usage.output_tokens': written,
          'gw.ai.usage.cost.total': (read * input + written * output).toFixed(8),
        }
      : {}),
  };
}

/** Runs in the page before its scripts: the stream of requests begins with those of `entries`. */
export function prependRequests(entries) {
  const original = globalThis.fetch;
  globalThis.fetch = async (path, options) => {
    const response = await original(path, options);
    if (path !== '/api/requests' || response.body === null) return response;
    const first = entries.map((entry) => `event: request\ndata: ${JSON.stringify(entry)}\n\n`).join('');
    const reader = response.body.getReader();
    const body = new ReadableStream({
      start: (control) => control.enqueue(new TextEncoder().encode(first)),
      async pull(control) {
        const { done, value } = await reader.read();
        if (done) control.close();
        else control.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}
