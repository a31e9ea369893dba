import { createHash, randomBytes } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';
import { openIdConfiguration } from '../../credentials/issuer-metadata.ts';
import { Admitter, admitting } from '../../kernel/admission.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { definePolicy } from '../../kernel/policy.ts';
import { processSecret, signOutPath } from '../../kernel/request/shared-slots.ts';
import { sharedStore } from '../../kernel/shared-store.ts';
import { readText } from '../../transport/text-or-file.ts';
import { DocumentClient } from '../../transport/upstream/document-client.ts';
import { KeySet } from '../jwt/key-set.ts';
import {
  keySource,
  reportKeySetProblems,
  reportMetadataProblems,
  watchedDocument,
} from '../jwt/key-source.ts';
import { TokenValidator } from '../jwt/token-validator.ts';
import { type Config, schema } from './config.ts';
import { SealedCookies } from './cookies.ts';
import {
  type EndedSessions,
  OwnEndedSessions,
  ownEndedSessions,
  SharedEndedSessions,
} from './ended-sessions.ts';
import { Provider } from './provider.ts';
import { Renewals } from './renewals.ts';
import { Sessions } from './sessions.ts';
import { SignIn } from './sign-in.ts';
import { SignOut } from './sign-out.ts';

/** Sign-in of browsers (OpenID Connect, authorization code flow with PKCE). The session is in the browser only. */
export const oidc = definePolicy({
  key: 'oidc',
  places: ['gateway', 'route'],
  restrictsClients: true,
  schema,
  trace: { kind: 'oidc', stage: 'oidc' },
  compile(config, context) {
    const { issuer, clientId, redirectURI, jwks } = config;
    const client = new DocumentClient(context.settings.callMeter('Policy', 'Oidc'));
    if (jwks !== undefined) reportKeySetProblems(jwks, context.at('jwks'));
    if (config.discovery !== undefined) reportMetadataProblems(config.discovery, context.at('discovery'));
    const provider = openProvider(config, client, context);
    const keys = new KeySet(
      jwks === undefined
        ? async () => client.fetch((await provider.endpoints()).keys ?? '', LIMITS.keySetBytes)
        : keySource(jwks, context.folder, client),
      context.log,
    );
    const validator = new TokenValidator(keys, {
      issuer,
      audiences: [clientId],
      required: ['exp'],
      accessTokenType: undefined,
    });
    const { pathname, protocol } = new URL(redirectURI);
    // With the client, which is a second lock: `audiences` refuses tokens of another one.
    const id = createHash('sha256')
      .update(JSON.stringify([issuer, clientId, redirectURI]))
      .digest('hex')
      .slice(0, 16);
    const cookies = new SealedCookies(secretOf(context), id, protocol === 'https:');
    const renewals = new Renewals(provider);
    const shared = context.shared('renewals', { renew: (token: string) => renewals.renew(token) });
    const own = ownEndedSessions.ensure(context.settings, () => new OwnEndedSessions());
    const sharedEnds = context.shared('ended', {
      end: (id: string, expires: number) => own.end(id, expires),
      has: (id: string) => own.has(id),
    });
    const store = sharedStore.get(context.settings);
    const ended: EndedSessions =
      store === undefined ? sharedEnds.call : new SharedEndedSessions(store, sharedEnds.call);
    const admitter = new Admitter(
      context.settings,
      async (id) => ((await ended.has(id)) === true ? undefined : true),
      () => 'its user has signed out',
    );
    const at = context.path.join('.');
    context.inspection.bounds.push(
      {
        name: 'oidc.tokens',
        at,
        max: LIMITS.validTokens,
        keepsLatest: true,
        used: () => validator.remembered,
      },
      { name: 'oidc.renewals', at, max: LIMITS.sessionRenewals, used: () => renewals.size },
      { name: 'oidc.endedSessions', at, max: LIMITS.oidcEndedSessions, used: () => own.size },
    );
    const sessions = new Sessions(cookies, validator, shared.call, ended, admitter);
    const signIn = new SignIn(provider, sessions, cookies);
    const signOut = new SignOut(provider, sessions, cookies, config);
    const logoutPath = config.logout?.path;
    return {
      identifies: { variable: 'jwt', takes: 'a sign-in', isRequired: true },
      paths: logoutPath === undefined ? [pathname] : [pathname, logoutPath],
      async request(ctx) {
        if (ctx.path === logoutPath) return signOut.reply(ctx);
        const query = new URLSearchParams(ctx.query);
        const isAnswer = query.has('state') && (query.has('code') || query.has('error'));
        if (ctx.method === 'GET' && ctx.path === pathname && isAnswer) return signIn.end(ctx, query);
        if (!(await sessions.resume(ctx))) return signIn.begin(ctx);
        if (logoutPath !== undefined) signOutPath.set(ctx, logoutPath);
        return undefined;
      },
      ...admitting(admitter),
      response: (ctx, reply) => sessions.respond(ctx, reply),
      reloads: [
        ...watchedDocument(jwks, context.folder, () => keys.reread()),
        ...watchedDocument(config.discovery, context.folder, () => provider.reread()),
      ],
      served: () => void keys.reread(),
      close: () => {
        shared.release();
        sharedEnds.release();
        return client.close();
      },
    };
  },
});

function openProvider(config: Config, client: DocumentClient, context: CompileContext): Provider {
  const { issuer, authorizationEndpoint, tokenEndpoint, tokenEndpointAuth, discovery } = config;
  const document = discovery ?? { url: openIdConfiguration(issuer) };
  return new Provider({
    issuer,
    clientId: config.clientId,
    // A file that cannot be read is reported.
    clientSecret: readText(config.clientSecret, context.at('clientSecret')) ?? '',
    redirectUri: config.redirectURI,
    scope: [...new Set(['openid', ...config.scopes])].join(' '),
    endpoints:
      authorizationEndpoint == null || tokenEndpoint == null
        ? undefined
        : {
            authorization: authorizationEndpoint,
            token: tokenEndpoint,
            keys: undefined,
            auth: tokenEndpointAuth ?? 'clientSecretBasic',
            sendsIssuer: false,
            endSession: config.endSessionEndpoint ?? undefined,
            revocation: undefined,
          },
    metadata: keySource(document, context.folder, client),
    client,
    log: context.log,
  });
}

/** The variable of upstream, else the key of session ids, which all workers share. */
function secretOf(context: CompileContext): Buffer {
  const configured = context.env['OIDC_COOKIE_SECRET'];
  if (configured !== undefined && configured.length >= 32) return Buffer.from(configured);
  if (configured !== undefined)
    context.report({
      code: 'AGW0104',
      atKey: true,
      message: 'the environment variable OIDC_COOKIE_SECRET has fewer than 32 characters',
      help: 'set it to random text, such as that of `openssl rand -hex 32`',
    });
  const secret = processSecret.get(context.settings);
  if (configured === undefined && secret?.isConfigured !== true)
    context.report({
      code: 'AGW0305',
      atKey: true,
      message:
        'sessions of browsers end when agctl restarts, because the key of their cookies is generated at each start',
      help: 'set the environment variable OIDC_COOKIE_SECRET to random text, such as that of `openssl rand -hex 32`',
    });
  return secret?.value() ?? randomBytes(32);
}
