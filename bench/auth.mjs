// npm run bench auth -- [--rounds 3] [--seconds 4] [--connections 32] [--tokens 100000] [--no-gateway]
// What a validated request costs: one token in this process, remembered and not, beside the bare signature check; then
// requests through the gateway with and without sign-in. Last, as many tokens that are almost right as --tokens says
// are judged by us and by jose, whose verdicts must not differ without a reason.
import { verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createLog } from '../src/core/log.ts';
import { KeySet } from '../src/server/policies/mcp-authentication/key-set.ts';
import { TokenValidator } from '../src/server/policies/mcp-authentication/token-validator.ts';
import { compareWithJose } from '../test/kit/differential.ts';
import { signingKey, token } from '../test/kit/tokens.ts';
import { gatewayBuilds, LOAD_CORE, pinSelf, start, startGateway, startPeer } from './harness/processes.mjs';
import { compare, conditions, table } from './harness/report.mjs';
import { interleave, median } from './harness/rounds.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '32' },
    tokens: { type: 'string', default: '100000' },
    gateway: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const settings = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: Number(values.connections),
};

const ISSUER = 'https://idp.example/realms/main';
const AUDIENCE = 'mcp-client';
const ROUNDS = 9;
const BATCH = 2_000;

/** As big as an access token of a provider with realms is. */
const claims = (serial) => ({
  iss: ISSUER,
  aud: [AUDIENCE, 'account'],
  sub: '5e9891c3-3c13-4093-a4df-afe73fb24506',
  typ: 'Bearer',
  azp: AUDIENCE,
  jti: `onrtro:${serial}`,
  iat: Math.floor(Date.now() / 1000),
  exp: Math.floor(Date.now() / 1000) + 3600,
  sid: '9f2ec26f-ab31-49f1-a7bc-dbd821673240',
  'allowed-origins': ['http://127.0.0.1:33418'],
  realm_access: { roles: ['default-roles-main', 'offline_access', 'uma_authorization', 'tools'] },
  resource_access: { account: { roles: ['manage-account', 'manage-account-links', 'view-profile'] } },
  scope: 'openid profile email',
  email_verified: true,
  name: 'Alice Example',
  preferred_username: 'alice',
  email: 'alice@example.com',
});

async function validatorOf(key) {
  const sink = { write: () => undefined, dropped: 0, flush: () => Promise.resolve() };
  const read = async () => ({ value: { keys: [key.jwk] }, lifetime: Number.POSITIVE_INFINITY });
  const keys = new KeySet(read, createLog(sink, 'error', 'text'));
  const rules = { issuer: ISSUER, audiences: [AUDIENCE], required: ['exp'], accessTokenType: 'Bearer' };
  const validator = new TokenValidator(keys, rules);
  await validator.validate(token(key, claims('first')));
  return validator;
}

/** Median over rounds of the µs that one call takes; every round has its own `prepare`d state. */
async function measure(prepare, run) {
  const rounds = [];
  for (let round = -2; round < ROUNDS; round += 1) {
    const state = await prepare();
    const started = process.hrtime.bigint();
    for (let index = 0; index < BATCH; index += 1) run(state, index);
    if (round >= 0) rounds.push(Number(process.hrtime.bigint() - started) / BATCH / 1000);
  }
  return median(rounds);
}

/** What is given to the bare check is prepared beforehand: bytes, signature and key. */
function bareInput(text, { privateKey, jwk }) {
  const at = text.lastIndexOf('.');
  return {
    signed: Buffer.from(text.slice(0, at)),
    signature: Buffer.from(text.slice(at + 1), 'base64url'),
    key: { key: { ...jwk }, format: 'jwk', privateKey },
  };
}

async function micro() {
  const rows = [];
  for (const alg of ['ES256', 'RS256', 'PS256', 'EdDSA']) {
    const key = signingKey('k', alg);
    const texts = Array.from({ length: BATCH }, (_, serial) => token(key, claims(serial)));
    const bare = bareVerifier(key, texts);
    const plain = await measure(() => undefined, (_, index) => bare(index));
    const fresh = await measure(
      () => validatorOf(key),
      (validator, index) => validator.validate(texts[index]),
    );
    const remembered = await measure(
      async () => {
        const validator = await validatorOf(key);
        for (const text of texts) validator.validate(text);
        return validator;
      },
      (validator, index) => validator.validate(texts[index]),
    );
    rows.push([
      `${alg}, ${texts[0].length} characters`,
      plain.toFixed(1),
      fresh.toFixed(1),
      `${(fresh / plain).toFixed(2)} ×`,
      remembered.toFixed(1),
    ]);
  }
  console.log(table(['µs per token', 'bare verify', 'new token', 'against bare', 'remembered'], rows));
}
