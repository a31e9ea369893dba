import { membersOf, textIn } from '../../../core/foreign.ts';
import { valueAt } from '../../kernel/json/json-text.ts';
import { isSameId, type RpcMessage } from '../protocol/message.ts';

/** One call at the server. Several requests of the client may belong to it: the first, and one for each round of input. */
export interface ViewedCall {
  /** Id at the server. */
  readonly id: number;
  readonly method: string;
  /** The first request. */
  readonly message: RpcMessage;
  readonly logLevel: string | undefined;
  /** Progress token of the first request, as JSON text, which the server uses. */
  readonly token: string | undefined;
  /** Progress token of the latest request. */
  latestToken: string | undefined;
  /** Id of the client's request; undefined while the call waits for input. */
  outer: number | undefined;
  /** Requests of the server that the client has not answered, by the key that the client uses. */
  readonly asked: Map<string, RpcMessage>;
  rounds: number;
  /** The `requestState` under which it waits. */
  state: string | undefined;
  timer: NodeJS.Timeout | undefined;
  /** The latest progress that arrived while the call waited. */
  progress: RpcMessage | undefined;
  /** The response, if it arrived while the call waited. */
  response: RpcMessage | undefined;
}

/** The call of a first request. `id`: at the server. `outer`: the client's. */
export function viewedCall(
  id: number,
  message: RpcMessage,
  outer: number,
  logLevel: string | undefined,
): ViewedCall {
  const meta = membersOf(message.params['_meta']);
  const token = meta['progressToken'] === undefined ? undefined : tokenOf(message.text);
  return {
    id,
    method: message.method,
    message,
    logLevel,
    token,
    latestToken: token,
    outer,
    asked: new Map(),
    rounds: 0,
    state: undefined,
    timer: undefined,
    progress: undefined,
    response: undefined,
  };
}

/** Why a server cannot ask the client. */
export const NO_CALL = 'the client can only be asked while one of its calls is in flight';

/** Why a request cannot continue a call. */
export const UNKNOWN_STATE =
  'params.requestState is unknown or has expired: send the request again without it';
export const STATE_OF_ANOTHER =
  'params.requestState belongs to another request: repeat the method, name and arguments of the first';

/** What a retry must have in common with the first request: all but the input, the state and `_meta`. */
export function subjectOf({ method, params }: RpcMessage): string {
  const { _meta, requestState, inputResponses, ...rest } = params;
  return JSON.stringify([method, rest]);
}

/** The progress token of a request, as JSON text. */
export function tokenOf(text: string): string | undefined {
  const span = valueAt(text, ['params', '_meta', 'progressToken']);
  return span && text.slice(span.start, span.end);
}

/** The call whose server got that progress token, as JSON text. */
export const callOfToken = (calls: readonly ViewedCall[], token: string): ViewedCall | undefined =>
  calls.find((call) => call.token === token) ??
  calls.find((call) => call.token !== undefined && isSameId(call.token, token));

/** Log levels by increasing severity (RFC 5424). */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** Whether the first request asked for log messages of that level. */
export const wantsLog = ({ logLevel }: ViewedCall, level: unknown): boolean =>
  logLevel !== undefined && LEVELS.indexOf(textIn(level)) >= LEVELS.indexOf(logLevel);

/** The result that asks the client for input: the server's unanswered requests, by the key that the client uses. */
export function inputRequired(asked: ReadonlyMap<string, RpcMessage>, state: string): string {
  const requests = [...asked].map(
    ([key, { text, method }]) =>
      `${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":${paramsOf(text)}}`,
  );
  return `{"resultType":"input_required","inputRequests":{${requests.join(',')}},"requestState":"${state}"}`;
}

/** The parameters of a request, as JSON text. */
function paramsOf(text: string): string {
  const span = valueAt(text, ['params']);
  return span === undefined ? '{}' : text.slice(span.start, span.end);
}
