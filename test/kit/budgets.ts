import { amountText } from '../../src/core/budget.ts';
import type { ShownKey } from '../../src/core/virtual-key.ts';
import { partsOfCounter } from '../../src/server/budgets/counter.ts';
import { type Spending, spendingOf } from '../../src/server/budgets/spending.ts';
import type { TestGateway, TestGatewayOptions } from './gateway.ts';
import { modelsGateway } from './llm-provider.ts';
import { send } from './send.ts';

/** A thousandth of a USD per token: a call with `USAGE` costs 0.019 USD. */
export const PRICES = {
  providers: { openai: { models: { 'acme-mini': { rates: { input: '1000', output: '1000' } } } } },
};

/** A gateway with a SQLite database in `folder`, and one model that this provider answers. */
export function budgetGateway(
  { address }: { address: string },
  folder: string,
  policies: object,
  {
    model = {},
    config = {},
    options = {},
  }: { model?: object; config?: object; options?: TestGatewayOptions } = {},
): Promise<TestGateway> {
  const entry = {
    name: '*',
    provider: { custom: { providerOverride: 'openai', formats: FORMATS } },
    params: { baseUrl: `http://${address}/v1` },
    ...model,
  };
  const settings = {
    database: { url: 'sqlite://./agctl.db' },
    modelCatalog: [{ inline: PRICES }],
    ...config,
  };
  return modelsGateway([entry], { policies }, { config: settings }, { folder, ...options });
}

export const FORMATS = [
  'completions',
  'messages',
  'responses',
  'generateContent',
  'embeddings',
  'realtime',
].map((type) => ({ type }));

/** The spending of a gateway in this process. */
export function spending({ live }: Pick<TestGateway, 'live'>): Spending {
  const found = spendingOf.get(live.served.runtime.settings);
  if (found === undefined) throw new Error('the gateway has no database');
  return found;
}

/** What the database holds, such as `team red: 19 tokens`, in order. Waits for what is being written. */
export async function spentIn(gate: Pick<TestGateway, 'live'>): Promise<string[]> {
  const { ledger, store } = spending(gate);
  await ledger.flushed();
  const starts = [0, ...startsOfNow()];
  return (await store.spent(starts, 1_000)).map(({ counter, spent }) => {
    const { budget, unit, subject } = partsOfCounter(counter) ?? { budget: '?', unit: 'tokens', subject: '' };
    return `${budget}${subject === '' ? '' : ` ${subject}`}: ${amountText(unit, spent)}`;
  });
}

function startsOfNow(): number[] {
  const now = new Date();
  const day = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const weekday = (now.getUTCDay() + 6) % 7;
  return [
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), now.getUTCHours()),
    day,
    day - weekday * 86_400_000,
    Date.UTC(now.getUTCFullYear(), now.getUTCMonth()),
  ];
}

/** Creates a virtual key with the admin server of a gateway. */
export async function createKey(
  { admin }: Pick<TestGateway, 'admin'>,
  settings: object,
): Promise<{ readonly secret: string; readonly key: ShownKey; readonly warnings: readonly string[] }> {
  const { status, text } = await send(`${admin}/api/keys`, {
    method: 'POST',
    body: JSON.stringify(settings),
  });
  if (status !== 200) throw new Error(`${status} ${text}`);
  return JSON.parse(text) as { secret: string; key: ShownKey; warnings: string[] };
}
