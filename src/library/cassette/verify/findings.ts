import { REDACTED } from '../../../core/credentials.ts';
import { membersOf } from '../../../core/foreign.ts';
import { endpointAt } from '../../../server/llm/request/endpoints.ts';
import { canonical, differences } from '../compare.ts';
import { receivedEvents } from '../cut.ts';
import type { Body, Exchange, RecordedFacts, StreamEvent } from '../format.ts';
import type { Ignored } from '../ignored.ts';
import { idText, isEndless } from '../session-tape.ts';
import { jsonOf, pathOf, rpcMethod } from '../tape.ts';
import { type Finding, notesOf } from './finding.ts';
import { listFindings } from './lists.ts';
import type { Found } from './sender.ts';
import { shapeOf } from './shape.ts';

export interface CompareSettings {
  readonly ignored: Ignored;
  /** Whether texts of models, and what servers tell on streams without an end, are compared too. */
  readonly isStrict: boolean;
  /** Whether requests were sent with a credential. */
  readonly hasCredential: boolean;
}

/** What is not as recorded, and whether that may follow from what was redacted in the request. */
export function findingsOf(...compared: Parameters<typeof differing>): Finding[] {
  const [{ request }] = compared;
  const findings = differing(...compared);
  if (findings.length === 0 || !JSON.stringify(request.body ?? '').includes(REDACTED)) return findings;
  return [...findings, note(`the request has ${REDACTED} in place of a secret`)];
}

/** What is not as recorded in what a request gets now. `facts`: what the gateway knows of it, if it is our own. */
function differing(
  exchange: Exchange,
  found: Found,
  facts: RecordedFacts | undefined,
  settings: CompareSettings,
): Finding[] {
  const { response } = exchange;
  // The client had left before an answer, which says nothing of the gateway.
  if (response.status === 0) return [note('it had no answer when it was recorded')];
  if (found.skipped !== undefined) return [note(found.skipped)];
  // What of it was sent before that is another part each time.
  if (found.wasCancelled === true && found.failure === undefined && found.status < 400) return [];
  const isAborted = response.cut === 'client' || isEndless(exchange);
  if (isAborted && found.status === 0 && found.failure === undefined)
    return [note('no answer has begun before the client leaves, as it had left')];
  if (found.failure !== undefined && !isAborted)
    return [{ severity: 'error', code: 'AGW0501', message: found.failure }];
  const decided =
    facts === undefined || exchange.facts === undefined ? [] : decisions(exchange, exchange.facts, facts);
  if (found.status !== response.status) {
    const message = `status ${found.status}, and ${response.status} was recorded`;
    const said = textOf(found);
    const notes = said === '' ? [] : notesOf([{ path: ['answer'], recorded: undefined, found: said }]);
    const why = credentialNote(exchange, found, settings);
    return [{ severity: 'error', code: 'AGW0501', message, notes: [...notes, ...why] }, ...decided];
  }
  // Its words depend on the credential, which is not in the recording: missing, wrong, expired.
  if (found.status === 401) return decided;
  const asked = found.unexpected.map(
    (method): Finding => ({
      severity: 'error',
      code: 'AGW0503',
      message: `the server sends ${method}, which was not recorded`,
    }),
  );
  if (response.body !== undefined && 'omitted' in response.body)
    return [...decided, ...asked, note(`its answer was not recorded: ${response.body.omitted}`)];
  return [...decided, ...asked, ...(isAborted ? begun : answers)(exchange, found, settings)];
}

/** That a status may follow from credentials, which are removed from recordings. */
function credentialNote({ response }: Exchange, found: Found, { hasCredential }: CompareSettings): string[] {
  if (found.status === 401 && !hasCredential)
    return [
      "the credential of the client was removed from the recording: pass one with --header 'authorization: Bearer KEY'",
    ];
  if (response.status === 401)
    return [
      'it was sent without a credential, because what the client had sent was removed from the recording',
    ];
  return [];
}

const note = (message: string): Finding => ({ severity: 'note', code: 'AGW0507', message });

const textOf = ({ body }: Found): string => {
  if (body === undefined) return '';
  if ('text' in body) return body.text;
  return 'json' in body ? (JSON.stringify(body.json) ?? '') : '';
};

/** Who has decided, and what it has cost. */
function decisions({ response }: Exchange, recorded: RecordedFacts, now: RecordedFacts): Finding[] {
  const [before, after] = [policyOf(recorded), policyOf(now)];
  // Who else had a part in it follows from that.
  if (before !== after)
    return [changed('reason', `${after ?? 'no policy'} decides, and ${before ?? 'no policy'} did`)];
  const names = ['target', 'provider', 'usedModel'] as const;
  const others = names.filter((name) => recorded[name] !== now[name]);
  return [
    ...others.map((name) =>
      changed(name, `${now[name] ?? 'no'} ${CALLED[name]} answers, and ${recorded[name] ?? 'none'} did`),
    ),
    // How much of an answer there was when the client had left is chance.
    ...(response.cut === 'client' ? [] : costs(recorded, now)),
  ];
}

/** That a client has left is nobody's decision. */
const policyOf = ({ reason }: RecordedFacts): string | undefined =>
  reason === 'ClientClosed' ? undefined : reason;

const CALLED = { target: 'server', provider: 'provider', usedModel: 'model' } as const;

const changed = (name: string, message: string): Finding => ({
  severity: 'error',
  code: 'AGW0504',
  message,
  path: [name],
});

/** Answers of models have other lengths each time: only equal uses cost the same. */
function costs(recorded: RecordedFacts, now: RecordedFacts): Finding[] {
  const finding = (severity: Finding['severity'], name: string, message: string): Finding[] => [
    { severity, code: 'AGW0505', message, path: [name] },
  ];
  const { costUsd, inputTokens, outputTokens } = recorded;
  const isSameUse = inputTokens === now.inputTokens && outputTokens === now.outputTokens;
  const isKnown = costUsd !== undefined;
  const isDifferent = isSameUse && Math.abs((costUsd ?? 0) - (now.costUsd ?? 0)) >= 1e-9;
  if (isKnown !== (now.costUsd !== undefined) || isDifferent)
    return finding(
      'error',
      'costUsd',
      `it costs ${dollars(now.costUsd)}, and ${dollars(costUsd)} was recorded`,
    );
  if (inputTokens === now.inputTokens) return [];
  const [is, was] = [now.inputTokens ?? 'no', inputTokens ?? 'none'];
  return finding('warning', 'inputTokens', `it has ${is} input tokens, and ${was} were recorded`);
}

const dollars = (usd: number | undefined): string => (usd === undefined ? 'an unknown sum' : `${usd} USD`);

/** What had come before the client left. */
function begun(exchange: Exchange, found: Found, { ignored, isStrict }: CompareSettings): Finding[] {
  const isModel = isModelCall(exchange);
  // What servers tell on their own comes at any time.
  if (!isStrict && (isModel || isEndless(exchange))) return [];
  const isRpc = isEndless(exchange) || rpcMethod(exchange.request.body) !== undefined;
  const leftOut = ignored.and(isRpc ? OF_NOTIFICATIONS : isModel ? OF_MODELS : []);
  const texts = (events: readonly StreamEvent[]): string[] =>
    events
      .filter(({ json }) => !isRpc || !('id' in membersOf(json)))
      .map(({ json, text }) => canonical(json ?? text, leftOut));
  const now = texts(found.events ?? []);
  const missing = texts(receivedEvents(exchange.response)).filter((text) => {
    const at = now.indexOf(text);
    if (at !== -1) now.splice(at, 1);
    return at === -1;
  });
  if (missing.length === 0) return [];
  const message = 'the stream lacks what was recorded';
  return [{ severity: 'error', code: 'AGW0503', message, notes: missing.map((text) => text.slice(0, 200)) }];
}

/** What names calls, clients and versions. */
const OF_NOTIFICATIONS = ['params._meta', 'params.progressToken'];
const OF_MODELS = ['**.id', '**.created', '**.created_at'];
/** Also what a server mints for the next request. */
const OF_RESULTS = ['_meta', 'serverInfo.version', 'requestState', 'nextCursor'];

const isModelCall = ({ facts, request: { method, target } }: Exchange): boolean =>
  facts?.protocol === 'llm' || endpointAt(method, pathOf(target)) !== undefined;

function answers(exchange: Exchange, found: Found, settings: CompareSettings): Finding[] {
  const { request, response } = exchange;
  const rpc = rpcMethod(request.body);
  if (rpc !== undefined && rpc !== '') return rpcAnswers(exchange, found, settings);
  const isLlm = isModelCall(exchange);
  const isList = request.method === 'GET';
  if (isLlm && !isList && !settings.isStrict)
    return formFindings(shapeOf(valuesOf(response)), shapeOf(valuesOf(found)));
  const ignored = isLlm ? settings.ignored.and(OF_MODELS) : settings.ignored;
  const [was, is] = [comparable(response), comparable(found)];
  return (isList ? listFindings(was, is, settings.ignored) : undefined) ?? resultFindings(was, is, ignored);
}

function rpcAnswers(exchange: Exchange, found: Found, { ignored }: CompareSettings): Finding[] {
  const id = idText(jsonOf(exchange.request.body));
  const answerIn = (answer: Pick<Found, 'body' | 'events'>): Readonly<Record<string, unknown>> =>
    membersOf(
      [jsonOf(answer.body), ...(answer.events ?? []).map(({ json }) => json)].findLast(
        (json) => !('method' in membersOf(json)) && idText(json) === id,
      ),
    );
  const [was, is] = [answerIn(exchange.response), answerIn(found)];
  const inResult = ignored.in('result').and(OF_RESULTS);
  const lists = listFindings(was['result'], is['result'], inResult);
  if (lists !== undefined && is['error'] === undefined) return lists;
  const fails = is['error'] !== undefined;
  if (fails === (was['error'] !== undefined))
    return fails
      ? resultFindings(was['error'], is['error'], ignored.in('error'))
      : resultFindings(was['result'], is['result'], inResult);
  const parts = ['result', 'error'].filter((name) => !ignored.in(name).isHere);
  const all = parts.map((name) => ({ path: [name], recorded: was[name], found: is[name] }));
  if (all.length === 0) return [];
  const message = fails
    ? 'the call fails, and a result was recorded'
    : 'the call succeeds, and an error was recorded';
  return [{ severity: 'error', code: 'AGW0503', message, notes: notesOf(all) }];
}

function resultFindings(was: unknown, is: unknown, ignored: Ignored): Finding[] {
  const all = differences(was, is, ignored);
  if (all.length === 0) return [];
  return [
    { severity: 'error', code: 'AGW0503', message: 'the result is not as recorded', notes: notesOf(all) },
  ];
}

function formFindings(was: ReadonlySet<string>, is: ReadonlySet<string>): Finding[] {
  const gone = [...was].filter((part) => !is.has(part)).map((part) => `recorded, and not any more: ${part}`);
  const added = [...is].filter((part) => !was.has(part)).map((part) => `new: ${part}`);
  if (gone.length + added.length === 0) return [];
  const message = 'the answer of the model has another form';
  return [{ severity: 'warning', code: 'AGW0506', message, notes: [...gone, ...added] }];
}

/** JSON of an answer, or of the events of a stream. */
const valuesOf = ({ body, events }: Pick<Found, 'body' | 'events'>): unknown[] =>
  events === undefined ? [comparable({ body })] : events.map(({ json, text }) => json ?? text);

const comparable = ({
  body,
  events,
}: {
  body?: Body | undefined;
  events?: readonly StreamEvent[] | undefined;
}): unknown => (events === undefined ? (jsonOf(body) ?? body) : events.map(({ json, text }) => json ?? text));
