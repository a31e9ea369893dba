import { LIMITS } from '../../core/limits.ts';
import { TOOL_ERROR } from '../../core/outcome.ts';
import { groupOf, nameIn, shownKeyOf, userOf } from '../expressions/caller.ts';
import type { CelResult } from '../kernel/expression.ts';
import type { Column, Fact, FieldValue } from '../kernel/fact.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { a2aCall } from '../kernel/request/shared-slots.ts';
import { llmFacts } from '../llm/facts.ts';
import { llmCall, refusedModel } from '../llm/llm-call.ts';
import { mcpFacts } from '../mcp/facts.ts';
import { mcpFields } from '../mcp/request-fields.ts';
import { costUnits } from './money.ts';
import type { RecordPolicy } from './policy.ts';

/** What the record of a request needs of the policy. */
type Redaction = Pick<RecordPolicy, 'added' | 'label' | 'value'>;

/** A request that has ended, with what its columns are read from. */
interface Ended {
  readonly ctx: RequestContext;
  readonly status: number;
  /** Values of `add`. */
  readonly added: Readonly<Record<string, CelResult>> | undefined;
  readonly policy: Redaction;
}

type ReadColumn<Source> = Column<Source> & Required<Pick<Column<Source>, 'read'>>;

/** Columns of every request. Those of its calls are in the facts of their features. */
const REQUEST_COLUMNS: readonly ReadColumn<Ended>[] = [
  {
    name: 'time',
    type: 'time',
    shown: 'time',
    doc: 'When the request was received.',
    read: ({ ctx }) => ctx.timings.startedAt,
  },
  {
    name: 'duration',
    type: 'duration',
    shown: 'durationMs',
    doc: 'Milliseconds until the end of its response.',
    read: ({ ctx }) => ctx.timings.duration,
  },
  {
    name: 'protocol',
    type: 'text',
    shown: 'protocol',
    doc: '`http`, `mcp`, `llm` or `a2a`.',
    filter: 'protocol',
    read: ({ ctx }) => (a2aCall.get(ctx) === undefined ? ctx.protocol : 'a2a'),
  },
  {
    name: 'operation',
    type: 'text',
    shown: 'operation',
    doc: 'Operation of an LLM call, method of an MCP message or A2A call, otherwise method of the request.',
    filter: 'operation',
    read: operationOf,
  },
  {
    name: 'listener',
    type: 'text',
    shown: 'listener',
    doc: 'Name of the listener.',
    read: ({ ctx }) => ctx.listener,
  },
  {
    name: 'route',
    type: 'text',
    shown: 'route',
    doc: 'Name of the selected route.',
    filter: 'route',
    read: ({ ctx }) => ctx.route,
  },
  {
    name: 'path',
    type: 'text',
    shown: 'path',
    doc: 'Path that the client requested.',
    read: ({ ctx }) => pathOf(ctx),
  },
  {
    name: 'status',
    type: 'count',
    shown: 'status',
    doc: 'Status of the response; 499 if the client left before it.',
    read: ({ status }) => status,
  },
  {
    name: 'error',
    type: 'text',
    shown: 'error',
    doc: 'The error that the client received, or that a provider or server reported.',
    read: errorOf,
  },
  {
    name: 'reason',
    type: 'text',
    shown: 'reason',
    doc: 'The part of the gateway that answered, such as `Authorization`; absent if it was the upstream.',
    read: ({ ctx }) => (ctx.reason === 'Upstream' ? undefined : ctx.reason),
  },
  // Who ended a response before it was complete.
  {
    name: 'cut',
    type: 'text',
    shown: 'cut',
    doc: 'Who ended a response before it was complete: `client`, `upstream` or `timeout`.',
    read: cutBy,
  },
  // Expressions of `add` come first; then what the policies know of the caller.
  {
    name: 'caller',
    type: 'text',
    shown: 'key',
    doc: 'Name of the API key.',
    filter: 'key',
    read: ({ ctx, added }) => nameIn(added?.['key']) ?? shownKeyOf(ctx),
  },
  {
    name: 'user_name',
    type: 'text',
    shown: 'user',
    doc: 'Subject of the token, or user of the key.',
    filter: 'user',
    read: ({ ctx, added }) => nameIn(added?.['user']) ?? userOf(ctx),
  },
  {
    name: 'user_group',
    type: 'text',
    shown: 'group',
    doc: 'Group or team of the key.',
    filter: 'group',
    read: ({ ctx, added }) => nameIn(added?.['group']) ?? groupOf(ctx),
  },
  {
    name: 'client',
    type: 'text',
    shown: 'client',
    doc: 'IP address of the client.',
    read: ({ ctx }) => ctx.client.address,
  },
  {
    name: 'agent',
    type: 'text',
    shown: 'userAgent',
    doc: 'User agent of the client.',
    read: ({ ctx }) => ctx.headers.get('user-agent'),
  },
  {
    name: 'trace_id',
    type: 'text',
    shown: 'traceId',
    doc: 'Id of the OpenTelemetry trace, if the request is recorded for it.',
    filter: 'trace',
    read: ({ ctx }) => ctx.span?.traceId,
  },
  {
    name: 'added',
    type: 'json',
    shown: 'added',
    doc: 'Fields that `frontendPolicies.accessLog.database.add` names.',
    read: addedText,
  },
];

const LLM_COLUMNS = columnsOf(llmFacts);
const MCP_COLUMNS = columnsOf(mcpFacts);

function columnsOf<Source>(facts: readonly Fact<Source>[]): readonly ReadColumn<Source>[] {
  return facts.flatMap(({ read, column }) => (column === undefined ? [] : [{ read, ...column }]));
}

/** All columns of `agctl_records` except its id. */
export const COLUMNS: readonly Column<never>[] = [...REQUEST_COLUMNS, ...MCP_COLUMNS, ...LLM_COLUMNS];

/** The values of its columns by name. */
export type RequestRecord = Readonly<Record<string, string | number | null>>;

/** The record of a request that has ended. All its texts are redacted. */
export function recordOf(ctx: RequestContext, status: number, policy: Redaction): RequestRecord {
  const llm = llmCall.get(ctx);
  const record: Record<string, string | number | null> = {};
  const store = <Source>(columns: readonly ReadColumn<Source>[], source: Source | undefined): void => {
    for (const { name, type, read } of columns)
      record[name] = source === undefined ? absent(type) : stored(type, read(source), policy);
  };
  const added = policy.added(ctx);
  store(REQUEST_COLUMNS, { ctx, status, added, policy });
  store(MCP_COLUMNS, mcpFields.get(ctx));
  store(LLM_COLUMNS, llm);
  // A conversation that the client names, also for calls of models, which have no session of their own.
  const session = nameIn(added?.['session']);
  if (session !== undefined) record['session'] = policy.label(session);
  const refused = refusedModel.get(ctx);
  if (llm === undefined && refused !== undefined) record['model'] = policy.label(refused);
  return record;
}

/** The only column that is never null and that a request without a call lacks. */
const absent = (type: Column<never>['type']): number | null => (type === 'flag' ? 0 : null);

function stored(type: Column<never>['type'], value: FieldValue, policy: Redaction): string | number | null {
  if (value === undefined || value === null) return absent(type);
  if (type === 'text') return policy.label(String(value));
  if (type === 'json') return String(value);
  if (type === 'usd') return costUnits(String(value));
  if (type === 'flag') return value === true ? 1 : 0;
  const number = Number(value);
  return type === 'duration' ? Math.round(number * 1000) : number;
}

function operationOf({ ctx }: Ended): string {
  const call = llmCall.get(ctx)?.operation ?? mcpFields.get(ctx)?.method ?? a2aCall.get(ctx)?.method;
  return call ?? ctx.requestedMethod;
}

function errorOf({ ctx }: Ended): string | undefined {
  const mcp = mcpFields.get(ctx);
  const provider = llmCall.get(ctx)?.providerError;
  if (provider !== undefined)
    return [ctx.error, provider.name].filter((each) => each !== undefined).join(': ');
  return ctx.error ?? mcp?.errorMessage ?? (mcp?.isToolError ? TOOL_ERROR : undefined);
}

/** A stream whose client has left, or whose provider ended it early, has fewer tokens than it would have had. */
function cutBy({ ctx }: Ended): string | undefined {
  const llm = llmCall.get(ctx);
  if (ctx.reason === 'Timeout') return 'timeout';
  if (ctx.isAbandoned || ctx.reason === 'ClientClosed') return 'client';
  return llm?.progress === 'responding' && llm.streaming ? 'upstream' : undefined;
}

function addedText({ added, policy }: Ended): string | undefined {
  if (added === undefined) return undefined;
  const { key, user, group, session, ...rest } = added;
  if (Object.keys(rest).length === 0) return undefined;
  const text = JSON.stringify(policy.value(rest));
  return text.length > LIMITS.recordText * 4 ? undefined : withoutNul(text);
}

function pathOf({ path, requestedTarget, request }: RequestContext): string {
  const target = requestedTarget ?? (path === '' ? (request.url ?? '') : path);
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

/** PostgreSQL stores neither NUL nor half of a surrogate pair, which JSON text has as escapes. */
export function withoutNul(json: string): string {
  return json
    .replace(/(?<!\\)((?:\\\\)*)\\u0000/g, '$1')
    .replace(/(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}/g, '$1\\ufffd');
}
