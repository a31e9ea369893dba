// A gateway with 10,000 virtual keys, each with budgets of its own, for `bench llm`.
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { startGateway } from './harness/processes.mjs';
import { llmConfig } from './llm-cases.mjs';

const KEYS = 10_000;
const RATES = { input: '1', output: '1' };

/** Workloads that it is measured with: streams pay once for 200 events. */
export const KEYS_WORKLOADS = ['small'];

/**
 * Starts it. A call takes from two budgets of its key (tokens and USD), and each uses another key. `keysFile` has the keys,
 * one per line, for the load generator.
 */
export async function startWithKeys(bin, upstream, folder, name) {
  const config = llmConfig(upstream);
  const path = join(folder, `${name}.db`);
  config.config = {
    ...config.config,
    database: { url: `sqlite://${path}` },
    modelCatalog: [{ inline: { providers: { openai: { models: { bench: { rates: RATES } } } } } }],
  };
  config.llm.policies.apiKey = { mode: 'strict', virtualKeys: {} };
  const file = join(folder, `${name}.yaml`);
  writeFileSync(file, JSON.stringify(config));
  const gateway = await startGateway(bin, file);
  const keys = insertKeys(path);
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
function insertKeys(path) {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  const insert = database.prepare(
    'INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const settings = JSON.stringify({
    metadata: { team: 'red' },
    budgets: ['1000000USD/month', '1000000000000tokens/month'],
  });
  const keys = Array.from({ length: KEYS }, () => `sk-agctl-${randomBytes(32).toString('base64url')}`);
  database.exec('BEGIN');
  for (const [number, key] of keys.entries()) {
    const hash = createHash('sha256').update(key).digest('hex');
    insert.run(`${number}`, `key-${number}`, hash, key.slice(-4), settings, Date.now());
  }
  database.exec('UPDATE agctl_key_changes SET count = count + 1; COMMIT');
  database.close();
  return keys;
}
