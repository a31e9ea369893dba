import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type BudgetLimit, budgetText, parseBudget } from '../../core/budget.ts';
import { AppError } from '../../core/errors.ts';
import { jsonIn, membersOf, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { type KeySettings, readKeySettings } from '../../core/virtual-key.ts';
import { needsRole } from '../../server/admin-access/caller.ts';
import { type Spending, spendingOf } from '../../server/budgets/spending.ts';
import { shownKeys, shownSubjects } from '../../server/budgets/usage.ts';
import type { VirtualKey } from '../../server/budgets/virtual-key.ts';
import { routesOf, settingsOf } from '../../server/config/plan/plan.ts';
import { UnknownCommit } from '../../server/kernel/database.ts';
import { acceptsVirtualKeys } from '../../server/policies/api-key.ts';
import { budgets as budgetPolicy } from '../../server/policies/budgets.ts';
import type { Runtime } from '../../server/runtime/runtime.ts';
import { unpricedModels } from '../../server/runtime/unpriced-models.ts';
import type { EndpointCall } from '../call.ts';
import { defineEndpoint, sendJson, sendProblem, shows } from '../endpoint.ts';
import { keyPage } from '../key-query.ts';
import { readOnlyRefusal } from '../read-only.ts';
import { answer } from '../record-query.ts';
import type { Admin } from '../sources.ts';

/**
 * Virtual keys, `{keys: [ShownKey], next, total, hidden, readOnly}` (`core/virtual-key.ts`; `readOnly`: why keys cannot be created or
 * revoked, or null): all of them, oldest first, or with `limit` a page (`admin/key-query.ts`). POST creates one: `{name, allowedModels?, metadata?,
 * budgets?, expiresAt?}` returns `{secret, key: ShownKey, warnings: string[]}`; `secret` is the key itself, which is never
 * shown again.
 */
export const keys = defineEndpoint({
  path: '/api/keys',
  methods: { GET: shows('viewer'), POST: { role: 'editor', audit: 'key.create' } },
  handle: (request, reply, admin, call) =>
    withSpending(admin, request, reply, call, async (spending) => {
      if (request.method === 'GET')
        return answer(reply, async () => {
          const { keys: listed, next, ...counts } = keyPage(request, await spending.keys.list());
          return {
            keys: await shownKeys(spending, listed),
            next: next ?? null,
            ...counts,
            readOnly: readOnlyRefusal(admin) ?? roleRefusal(call) ?? null,
          };
        });
      const settings = readKeySettings(jsonIn(textIn(request.body)), Date.now());
      if (typeof settings === 'string') return sendProblem(reply, 400, settings);
      call.changed({ target: settings.name });
      const created = await spending.keys.create(settings);
      if (created === undefined)
        return sendProblem(
          reply,
          400,
          `\`name\`: the key \`${settings.name}\` exists and is not revoked: choose another name, or revoke it first`,
        );
      const { key, secret } = created;
      call.changed({ target: targetOf(key), after: hashOfRecord(key) });
      const { runtime } = admin.served();
      const warnings = [...unusedWarnings(runtime), ...unpricedWarnings(runtime, settings)];
      return sendJson(reply, { secret, key: (await shownKeys(spending, [key]))[0], warnings });
    }),
});

/** Why this caller cannot change keys. */
const roleRefusal = (call: EndpointCall): string | undefined =>
  call.may('editor') ? undefined : needsRole('changing keys', 'editor', call.caller);

const targetOf = ({ id, name }: VirtualKey): string => `${id} (${name})`;

/** Of what is known of a key, but for the key itself and its hash. */
const hashOfRecord = ({ hash: _hash, hint: _hint, ...record }: VirtualKey): string =>
  hash('sha256', JSON.stringify(record));

/** That no route or listener takes virtual keys. */
function unusedWarnings({ gateways }: Runtime): string[] {
  const places = gateways.flatMap(({ plan }) => [...plan.listeners, ...routesOf(plan)]);
  return places.some(({ policies }) => policies.some(acceptsVirtualKeys))
    ? []
    : [
        'no route of this gateway accepts the key: its configuration has no `virtualKeys`. Set `apiKey: { mode: strict, virtualKeys: {} }` in `policies`',
      ];
}

/** What a budget in USD of a new key refuses. */
function unpricedWarnings(
  { gateways, catalog }: Runtime,
  { budgets: limits, allowedModels }: KeySettings,
): string[] {
  if (!limits.some((limit) => parseBudget(limit)?.unit === 'usd')) return [];
  return unpricedModels(gateways, catalog, allowedModels).map(
    (model) =>
      `no price is known for ${model}: calls of the key are refused. Add it to \`config.modelCatalog\`, or set \`virtualKeys.failureMode: failOpen\``,
  );
}

/** Revokes a key: `{key}` is its id or name. Returns `{key: ShownKey, wasRevoked}`; `wasRevoked`: it was before, so nothing has changed. New calls with it are refused at once. */
export const revokeKey = defineEndpoint({
  path: '/api/keys/revoke',
  methods: { POST: { role: 'editor', audit: 'key.revoke' } },
  handle: (request, reply, admin, call) =>
    withSpending(admin, request, reply, call, async (spending) => {
      const { key: wanted } = membersOf(jsonIn(textIn(request.body)));
      if (typeof wanted !== 'string') return sendProblem(reply, 400, 'expected {"key": "<id or name>"}');
      call.changed({ target: wanted });
      const found = await spending.keys.revoke(wanted);
      if (found === undefined)
        return sendProblem(
          reply,
          400,
          `no key has the id or name \`${printable(wanted)}\`: \`agctl keys list\` lists all keys`,
        );
      const { key, isNew } = found;
      // What happened was said when it was revoked.
      if (!isNew) call.changesNothing();
      const { revokedAt: _now, ...before } = key;
      call.changed({ target: targetOf(key), before: hashOfRecord(before), after: hashOfRecord(key) });
      return sendJson(reply, { key: (await shownKeys(spending, [key]))[0], wasRevoked: !isNew });
    }),
});

/** Status 403 for a change if the gateway is read-only, 409 without a database, 503 if it fails. */
async function withSpending(
  admin: Admin,
  { method }: FastifyRequest,
  reply: FastifyReply,
  call: EndpointCall,
  work: (spending: Spending) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  const refusal = method === 'GET' ? undefined : readOnlyRefusal(admin);
  if (refusal !== undefined) return sendProblem(reply, 403, refusal);
  const spending = spendingOf.get(admin.served().runtime.settings);
  if (spending === undefined)
    return sendProblem(
      reply,
      409,
      'the gateway has no database for keys and budgets: set config.database.url, and restart the gateway (a reload does not open a database)',
    );
  try {
    return await work(spending);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    call.failed(error);
    const unknown = error instanceof UnknownCommit && method !== 'GET' ? `. ${UNKNOWN}` : '';
    return sendProblem(
      reply,
      503,
      `${error.message}${error.detail === undefined ? '' : `: ${error.detail}`}${unknown}`,
    );
  }
}

const UNKNOWN =
  'Look whether it was made with `agctl keys list`. A new key that is there is to be revoked: nobody has its secret';

/** Text from a client, shortened and on one line. */
const printable = (text: string): string => text.slice(0, 64).replace(/\p{C}/gu, '?');

/**
 * The budgets of the configuration, and what was used in their current windows: `{budgets: [{name, limit, key?}],
 * subjects: [ShownSubject]}` (`server/budgets/usage.ts`).
 */
export const budgets = defineEndpoint({
  path: '/api/budgets',
  methods: { GET: shows('viewer') },
  handle: (request, reply, admin, call) =>
    withSpending(admin, request, reply, call, async (spending) => {
      const { runtime } = admin.served();
      const configured = budgetsOf(runtime);
      const subjects = await shownSubjects(spending, configured, LIMITS.shownSubjects);
      return sendJson(reply, {
        budgets: configured.map(({ limit, ...budget }) => ({ ...budget, limit: budgetText(limit) })),
        subjects,
      });
    }),
});

interface ConfiguredBudget {
  readonly name: string;
  readonly limit: BudgetLimit;
  readonly key?: string | undefined;
}

/** Of all places; the same budget at several of them is one. */
function budgetsOf({ gateways }: Runtime): ConfiguredBudget[] {
  const policies = gateways.flatMap(({ plan }) => [
    ...plan.listeners.flatMap((listener) => listener.policies),
    ...routesOf(plan).flatMap((route) => route.policies),
  ]);
  const all = policies.flatMap((policy) => settingsOf(policy, budgetPolicy) ?? []);
  const known = new Map(
    all.map(({ name, limit, key }) => [
      JSON.stringify([name, limit, key]),
      { name, limit, ...(key !== undefined && { key }) },
    ]),
  );
  return [...known.values()];
}
