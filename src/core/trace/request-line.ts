import { isRecord, jsonIn, textIn } from '../foreign.ts';

type State = Readonly<Record<string, unknown>>;

/** The request as one line, from the variables of a trace: `POST /mcp  tools/call echo  sub=alice`. */
export function requestLine(state: State | undefined): string {
  const request = partOf(state, 'request');
  const parts = [
    `${textIn(request['method'])} ${textIn(request['path'])}`.trim(),
    mcpCall(state, request) || llmCall(state),
    subject(state),
  ];
  return parts.filter((part) => part !== '').join('  ');
}

/** The source of the request, if the trace contains it. */
export function sourceOf(state: State | undefined): string {
  const { address, port } = partOf(state, 'source');
  const host = textIn(address);
  // 0: a trusted proxy has named the client without its port.
  if (typeof port !== 'number' || port === 0) return host;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function mcpCall(state: State | undefined, request: State): string {
  const { methodName, method, tool } = partOf(state, 'mcp');
  const name = isRecord(tool) ? textIn(tool['name']) : textIn(tool);
  const known = textIn(methodName) || textIn(method);
  if (known !== '') return `${known} ${name}`.trim();
  const body = decodeBody(request['body']);
  if (!isRecord(body) || body['jsonrpc'] !== '2.0') return '';
  const params = isRecord(body['params']) ? body['params'] : {};
  return `${textIn(body['method'])} ${textIn(params['name'])}`.trim();
}

function llmCall(state: State | undefined): string {
  const model = textIn(partOf(state, 'llmRequest')['model']) || textIn(partOf(state, 'llm')['requestModel']);
  return model === '' ? '' : `model=${model}`;
}

function subject(state: State | undefined): string {
  const sub = textIn(partOf(state, 'jwt')['sub']);
  return sub === '' ? '' : `sub=${sub}`;
}

function partOf(state: State | undefined, root: string): State {
  const part = state?.[root];
  return isRecord(part) ? part : {};
}

/** Decodes a base64 body of a snapshot: as JSON if possible, else as text; undefined if it is neither. */
function decodeBody(body: unknown): unknown {
  if (typeof body !== 'string' || body === '') return undefined;
  try {
    const bytes = Uint8Array.from(atob(body), (character) => character.charCodeAt(0));
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    const value = jsonIn(text);
    return value === undefined ? text : value;
  } catch {
    return undefined;
  }
}

/** A copy for display, with decoded bodies. */
export function readable(value: State): State {
  const copy: Record<string, unknown> = { ...value };
  if (typeof copy['body'] === 'string' && typeof copy['stage'] === 'string')
    copy['body'] = decodeBody(copy['body']) ?? copy['body'];
  for (const root of ['request', 'response']) {
    const part = copy[root];
    if (isRecord(part) && part['body'] !== undefined)
      copy[root] = { ...part, body: decodeBody(part['body']) ?? part['body'] };
  }
  if (isRecord(copy['requestState'])) copy['requestState'] = readable(copy['requestState']);
  return copy;
}
