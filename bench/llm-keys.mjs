// What `config.database` costs, for `bench llm`: gateways with prices, with recorded calls of 10,000 virtual keys, and with
// budgets of each of these keys. Each has what the one before has, so that their differences are the costs.
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { startGateway } from './harness/processes.mjs';
import { lowerQuartile, median } from './harness/rounds.mjs';
import { llmConfig } from './llm-cases.mjs';

const KEYS = 10_000;
const RATES = { input: '1', output: '1' };
const LIMITS = ['1000000USD/month', '1000000000000tokens/month'];

/** Workloads that they are measured with: streams pay once for 200 events. */
export const DATABASE_WORKLOADS = ['small'];

/** Names of the gateways, in this order. */
const [PRICES, RECORDED, BUDGETS] = [
  'prices',
  'prices, 10k keys, recorded',
  'prices, 10k keys, recorded, budgets',
];

/** The gateways of one build, by name. `folder` gets their files. */
export async function startWithDatabase(bin, upstream, folder, build) {
  const config = configWithPrices(upstream);
  const file = join(folder, `${build}-prices.yaml`);
  writeFileSync(file, JSON.stringify(config));
  return [
    { name: `${build}, ${PRICES}`, ...(await startGateway(bin, file)) },
    {
      name: `${build}, ${RECORDED}`,
      ...(await startWithKeys(bin, upstream, folder, `${build}-recorded`, [])),
    },
    {
      name: `${build}, ${BUDGETS}`,
      ...(await startWithKeys(bin, upstream, folder, `${build}-budgets`, LIMITS)),
    },
  ];
}

/** What the gateways of a build cost more than the one before, from the figures of `interleave`: lines of text. */
export function databaseCosts(build, figures) {
  const lines = [
    ['a record of metadata, and finding the key', RECORDED, PRICES],
    ['two budgets of a key: reserved, charged, written', BUDGETS, RECORDED],
  ];
  const cpuOf = (name) => figures.get(`${build}, ${name}`).map(({ cpu }) => cpu);
  return lines.map(([what, name, without]) => {
    const [runs, before] = [cpuOf(name), cpuOf(without)];
    const middle = median(runs.map((cpu, round) => cpu - before[round]));
    const low = lowerQuartile(runs) - lowerQuartile(before);
    return `${build}: ${what}: ${middle.toFixed(1)} µs of CPU (median of the differences; of lower quartiles: ${low.toFixed(1)})`;
  });
}

function configWithPrices(upstream) {
  const config = llmConfig(upstream);
  const modelCatalog = [{ inline: { providers: { openai: { models: { bench: { rates: RATES } } } } } }];
  return { ...config, config: { ...config.config, modelCatalog } };
}

/**
 * Starts a gateway whose calls are recorded and take from these budgets of their key; each call uses another of the keys. `keysFile`
 * has the keys, one per line, for the load generator.
 */
export async function startWithKeys(bin, upstream, folder, name, budgets, count = KEYS) {
  const config = configWithPrices(upstream);
  const path = join(folder, `${name}.db`);
  config.config.database = { url: `sqlite://${path}` };
  config.llm.policies.apiKey = { mode: 'strict', virtualKeys: {} };
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, JSON.stringify(config));
  const gateway = await startGateway(bin, file);
  const keys = insertKeys(path, budgets, count);
  const keysFile = join(folder, `${name}.keys`);
  writeFileSync(keysFile, keys.join('\n'));
  const headers = { authorization: `Bearer ${keys[0]}` };
  const probe = { headers: { ...headers, 'user-agent': 'bench/1.0' } };
  // The gateway compares its keys with the database every second.
  for (let tries = 0; tries < 100; tries += 1) {
    const { status } = await fetch(`http://127.0.0.1:${gateway.port}/v1/models`, probe);
    if (status === 200) return { ...gateway, headers, keysFile };
    await delay(200);
  }
  throw new Error('the keys are not accepted');
}

/** 10,000 calls of the admin server would take half a minute. */
function insertKeys(path, budgets, count) {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  const insert = database.prepare(
    'INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const settings = JSON.stringify({ metadata: { team: 'red' }, budgets });
  const keys = Array.from({ length: count }, () => `sk-agctl-${randomBytes(32).toString('base64url')}`);
  database.exec('BEGIN');
  for (const [number, key] of keys.entries()) {
    const hash = createHash('sha256').update(key).digest('hex');
    insert.run(`${number}`, `key-${number}`, hash, key.slice(-4), settings, Date.now());
  }
  database.exec('UPDATE agctl_key_changes SET count = count + 1; COMMIT');
  database.close();
  return keys;
}
