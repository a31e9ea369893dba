// npm run bench auth -- [--rounds 3] [--seconds 4] [--connections 32] [--bin NAME=PATH] [--tokens 100000] [--no-gateway]
// What a validated request costs: one token in this process, remembered and new, next to a bare `crypto.verify` and
// jose's `jwtVerify`; then requests through the gateway with and without sign-in. Last, --tokens mutated tokens are
// validated by our rules and by `jwtVerify`, whose verdicts must not differ without a known reason.
import { constants, createPublicKey, verify } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { createLog } from '../src/core/log.ts';
import { KeySet } from '../src/server/policies/jwt/key-set.ts';
import { TokenValidator } from '../src/server/policies/jwt/token-validator.ts';
import { compareWithJose } from '../test/kit/differential.ts';
import { signingKey, token } from '../test/kit/tokens.ts';
import { OWN_PORTS } from './harness/own-ports.mjs';
import { gatewayBuilds, LOAD_CORE, pinSelf, startGateway, startPeer } from './harness/processes.mjs';
import { compare, conditions, table } from './harness/report.mjs';
import { interleave, median } from './harness/rounds.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '32' },
    tokens: { type: 'string', default: '100000' },
    bin: { type: 'string', multiple: true },
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
const ROUNDS = 25;
const BATCH = 1_000;
const SLICE = 100;

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

/** µs of CPU that the calls for one slice of the tokens take; the machine may have other work. */
async function timed(run, from) {
  const before = process.cpuUsage();
  for (let index = from; index < from + SLICE; index += 1) {
    const pending = run(index);
    if (pending !== undefined) await pending;
  }
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** µs of CPU a call, by way: slice after slice of the tokens, in which the ways take turns. */
async function inTurns(ways) {
  const totals = Object.fromEntries(Object.keys(ways).map((name) => [name, 0]));
  for (let from = 0; from < BATCH; from += SLICE) {
    for (const [name, run] of Object.entries(ways)) totals[name] += await timed(run, from);
  }
  for (const name of Object.keys(totals)) totals[name] /= BATCH;
  return totals;
}

/** How Node.js is told to check signatures of an algorithm. */
function verifierOf({ alg, jwk }) {
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const options = { key, ...(alg.startsWith('PS') ? pss : { dsaEncoding: 'ieee-p1363' }) };
  const digest = alg === 'EdDSA' ? null : 'sha256';
  return (signed, signature) => {
    if (!verify(digest, signed, options, signature)) throw new Error('a valid signature was rejected');
  };
}

/** The bare check of the same signatures, with everything that it needs taken apart beforehand. */
function bareVerifier(key, texts) {
  const check = verifierOf(key);
  const inputs = texts.map((text) => {
    const at = text.lastIndexOf('.');
    return [Buffer.from(text.slice(0, at)), Buffer.from(text.slice(at + 1), 'base64url')];
  });
  return (index) => check(...inputs[index]);
}

/** The same checks by jose alone, without what we refuse beyond it; one call after the other, as ours. */
function joseVerifier({ jwk }, texts) {
  const keys = createLocalJWKSet({ keys: [jwk] });
  const options = { issuer: ISSUER, audience: AUDIENCE, clockTolerance: 60, requiredClaims: ['exp'] };
  return (index) => jwtVerify(texts[index], keys, options);
}

/**
 * All ways in each round, so that a machine that is slow for a while is slow for all of them. New tokens are compared
 * with jose in the same round.
 */
async function measureTokens(alg) {
  const key = signingKey('k', alg);
  const texts = Array.from({ length: BATCH }, (_, serial) => token(key, claims(serial)));
  const bare = bareVerifier(key, texts);
  const jose = joseVerifier(key, texts);
  const rounds = [];
  for (let round = -2; round < ROUNDS; round += 1) {
    const validator = await validatorOf(key);
    const fresh = (index) => validator.validate(texts[index]);
    const remembered = (index) => {
      if (validator.validate(texts[index]) instanceof Promise) throw new Error('a token was forgotten');
    };
    const figures = { ...(await inTurns({ bare, jose, fresh })), ...(await inTurns({ remembered })) };
    if (round >= 0) rounds.push(figures);
  }
  const of = (figure) => median(rounds.map(figure));
  return [
    `${alg}, ${texts[0].length} characters`,
    of((figures) => figures.bare).toFixed(1),
    of((figures) => figures.jose).toFixed(1),
    of((figures) => figures.fresh).toFixed(1),
    `${of((figures) => figures.fresh / figures.jose).toFixed(2)} ×`,
    of((figures) => figures.remembered).toFixed(2),
  ];
}

function configFile(folder, name, upstream, policies) {
  const file = join(folder, `${name}.yaml`);
  const routes = [{ name: 'bench', policies, backends: [{ host: upstream }] }];
  const gateways = { default: { port: 0, protocol: 'HTTP', address: '127.0.0.1', routes } };
  writeFileSync(file, JSON.stringify({ config: OWN_PORTS, gateways }));
  return file;
}

/** Requests with the same token over and over, as a session sends them, beside a route that asks for none. */
async function throughGateway(folder) {
  const running = [];
  const keep = async (starting) => {
    const started = await starting;
    running.push(started);
    return started;
  };
  try {
    const upstream = `127.0.0.1:${(await keep(startPeer('upstream.mjs', [], LOAD_CORE))).port}`;
    const key = signingKey('k', 'RS256');
    const mcpAuthentication = {
      mode: 'strict',
      issuer: ISSUER,
      audiences: [AUDIENCE],
      provider: { idpx: {} },
      jwks: JSON.stringify({ keys: [key.jwk] }),
      resourceMetadata: { resource: 'http://127.0.0.1:3000/mcp' },
    };
    const authorization = { rules: ['"tools" in jwt.realm_access.roles'] };
    const headers = { accept: 'application/json', authorization: `Bearer ${token(key, claims('load'))}` };
    const cases = [];
    for (const [build, bin] of await gatewayBuilds(values.bin)) {
      for (const [label, policies] of [
        ['no sign-in', {}],
        ['sign-in', { mcpAuthentication }],
        ['sign-in and a rule on roles', { mcpAuthentication, authorization }],
      ]) {
        const file = configFile(folder, String(running.length), upstream, policies);
        const { pid, port } = await keep(startGateway(bin, file));
        const request = { method: 'GET', url: `http://127.0.0.1:${port}/mcp`, headers, pid };
        cases.push({ name: `${build} ${label}`, request: { ...request, connections: settings.connections } });
      }
    }
    const figures = await interleave(cases, settings);
    const rows = cases.map(({ name }) => ({ name, runs: figures.get(name) }));
    console.log(conditions(settings, 'GET, 600-byte JSON reply, one RS256 token'));
    console.log(compare(cases, figures));
    const added = (run) => median(run.map(({ cpu }, round) => cpu - rows[0].runs[round].cpu)).toFixed(1);
    for (const { name, runs } of rows.slice(1)) console.log(`${name}: ${added(runs)} µs of CPU added`);
  } finally {
    await Promise.all(running.map((started) => started.stop()));
  }
}

async function differential(count) {
  const started = performance.now();
  const { accepted, refused, stricter, unexplained } = await compareWithJose(count, Date.now());
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(`\n${count} tokens validated by us and by jose in ${seconds} s`);
  const rows = [
    ['accepted by both', String(accepted)],
    ['refused by both', String(refused)],
    ...Object.entries(stricter).map(([reason, times]) => [
      `rejected only by agctl: ${reason}`,
      String(times),
    ]),
    ['unexplained differences', String(unexplained.length)],
  ];
  console.log(table(['verdict', 'tokens'], rows));
  for (const difference of unexplained.slice(0, 5)) console.log(difference);
  if (unexplained.length > 0) process.exitCode = 1;
}

const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-'));
try {
  const rows = [];
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA']) rows.push(await measureTokens(alg));
  console.log(`Node ${process.versions.node}, median of ${ROUNDS} rounds of ${BATCH} tokens`);
  console.log(
    `${table(['µs of CPU per token', 'bare verify', 'jose', 'new', 'new / jose', 'cached'], rows)}\n`,
  );
  pinSelf();
  if (values.gateway) await throughGateway(folder);
  if (Number(values.tokens) > 0) await differential(Number(values.tokens));
} finally {
  rmSync(folder, { recursive: true });
}
