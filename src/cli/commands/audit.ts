import { AUDIT_OUTCOMES, type AuditEventView } from '../../core/audit-view.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { isRecord, membersOf, stringIn, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls, escapeInJson } from '../../core/log.ts';
import { displayWidth } from '../../core/render/width.ts';
import { type EventPage, storedEvents, type Wanted } from '../audit/stored-events.ts';
import type { Context, Run } from '../context.ts';
import { type AdminOptions, adminAddress } from '../proxy/address.ts';
import { ask, notAnAdmin } from '../proxy/admin-client.ts';
import { answered } from '../proxy/answered.ts';
import { print, table } from '../proxy/print.ts';
import { spanOption } from '../proxy/span.ts';

interface Options extends AdminOptions {
  readonly since?: string;
  readonly tail?: string;
  readonly action?: string;
  readonly actor?: string;
  readonly outcome?: string;
  readonly file?: string;
  readonly output: 'text' | 'json';
}

/** Lists events of the audit, newest first. */
export const run: Run<Options> = async (options, context) => {
  const { action, actor, outcome, output } = options;
  const wanted = { from: await sinceOf(options), action, actor, outcome };
  const most = tailOf(options);
  const source =
    options.file === undefined
      ? { page: pageOfGateway(wanted, options, context), close: () => Promise.resolve() }
      : await storedEvents(wanted, options.file, context);
  const events: AuditEventView[] = [];
  try {
    let after: number | undefined;
    do {
      const { events: more, next } = await source.page(
        Math.min(most - events.length, LIMITS.auditPage),
        after,
      );
      events.push(...more.map(eventIn));
      // A gateway that sends a place that does not come later would be asked for ever.
      after = next !== undefined && (after === undefined || next < after) ? next : undefined;
    } while (after !== undefined && events.length < most);
  } finally {
    await source.close();
  }
  if (output === 'json')
    await print(
      context.stdout,
      events.map((event) => `${escapeInJson(JSON.stringify(event))}\n`),
    );
  else if (events.length > 0) await print(context.stdout, [textOf(events)]);
  if (events.length === 0) context.stderr.write('no such events\n');
  return EXIT_CODES.ok.code;
};

function pageOfGateway(
  { from, action, actor, outcome }: Wanted,
  options: AdminOptions,
  context: Context,
): (limit: number, after: number | undefined) => Promise<EventPage> {
  const address = adminAddress(options, context);
  return async (limit, after) => {
    const query = new URLSearchParams({ from: String(from), limit: String(limit) });
    const filters = { action, actor, outcome, after: after?.toString() };
    for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
    const { body } = await ask(address, { method: 'GET', path: `/api/audit?${query}` });
    const { events, next } = answered(address, body.toString('utf8'), '/api/audit');
    if (!Array.isArray(events)) throw notAnAdmin(address.shown, 'its /api/audit answers without events');
    return { events, next: typeof next === 'number' ? next : undefined };
  };
}

/** An event, whatever a gateway of another version sends. */
function eventIn(value: unknown): AuditEventView {
  const event = membersOf(value);
  const actor = membersOf(event['actor']);
  const from = event['from'];
  const outcome = AUDIT_OUTCOMES.find((each) => each === event['outcome']) ?? 'unknown';
  const optional = (members: Readonly<Record<string, unknown>>, name: string): object => {
    const text = stringIn(members[name]);
    return text === undefined ? {} : { [name]: text };
  };
  return {
    time: textIn(event['time']),
    action: textIn(event['action']),
    outcome,
    actor: {
      kind: textIn(actor['kind']),
      ...optional(actor, 'name'),
      ...optional(actor, 'issuer'),
      ...optional(actor, 'role'),
    },
    ...(isRecord(from) && { from: { address: textIn(from['address']), ...optional(from, 'proxy') } }),
    ...optional(event, 'target'),
    ...optional(event, 'before'),
    ...optional(event, 'after'),
    ...optional(event, 'gateway'),
    ...optional(event, 'detail'),
  };
}

const HEADER = ['TIME', 'ACTION', 'OUTCOME', 'WHO', 'FROM', 'TARGET', 'GATEWAY', 'DETAIL'];

function textOf(events: readonly AuditEventView[]): string {
  const rows = events.map(
    ({ time, action, outcome, actor, from, target = '', gateway = '', detail = '' }) => [
      time.slice(0, 19).replace('T', ' '),
      action,
      outcome,
      actor.name === undefined ? actor.kind : `${actor.name} (${actor.kind})`,
      from?.address ?? '',
      target,
      gateway,
      detail,
    ],
  );
  return table(
    [HEADER, ...rows].map((row) => row.map(escapeControls)),
    displayWidth,
  );
}

async function sinceOf({ since }: Options): Promise<number> {
  if (since === undefined) return 0;
  if (!/^\d{4}-\d\d-\d\d/.test(since)) return Date.now() - (await spanOption('--since', since));
  const at = Date.parse(since);
  if (!Number.isNaN(at)) return at;
  throw new CommandError(
    'usage',
    `--since ${escapeControls(since)} is not a time`,
    'for example 2026-01-31T12:00:00Z, or 10m for the last ten minutes',
  );
}

const USUAL = 100;

function tailOf({ tail }: Options): number {
  if (tail === undefined) return USUAL;
  const count = /^\d{1,9}$/.test(tail) ? Number(tail) : 0;
  if (count > 0) return count;
  throw new CommandError('usage', `-n ${escapeControls(tail)} is not a number of events, such as 100`);
}
