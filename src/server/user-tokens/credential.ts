import { z } from 'zod';
import { isLoopbackHost } from '../../core/dns-rebinding.ts';
import { AppError } from '../../core/errors.ts';
import { list, nonEmpty } from '../../core/schema/mapping.ts';
import type { BackendCredential } from '../credentials/backend-auth.ts';
import type { CallerToken, Refusal } from '../credentials/subject-token.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';
import { DocumentClient } from '../transport/upstream/document-client.ts';
import { challengeIn } from './discovery.ts';
import { missingService } from './missing-service.ts';
import { ProtectedServer } from './protected-server.ts';
import { type SignInService, signInService } from './service.ts';
import { hasTokenWithoutSubject, type User, userOf } from './user.ts';

/** Endpoints of the server would be read without TLS otherwise. */
function isSecureIssuer(text: string): boolean {
  const url = URL.parse(text);
  return url === null || url.protocol === 'https:' || isLoopbackHost(url.hostname);
}

/** `backendAuth.oauth` of a target. */
export const oauthSchema = z.lazy(() =>
  z
    .strictObject({
      clientId: nonEmpty
        .optional()
        .describe(
          'Id of the gateway at the authorization server, where its redirect URI is registered: `<config.mcp.signIn.url>/callback/<name of the target>`. Default: a document that the page serves, if the server fetches such documents; otherwise the gateway registers itself (RFC 7591).',
        ),
      clientSecret: textOrFile.optional().meta({ secret: true }).describe('Its secret, or `{ file: … }`.'),
      scopes: list('Scopes to request. Default: those that the server asks for.', nonEmpty),
      authorizationServer: z
        .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
        .refine(isSecureIssuer, {
          error: 'expected an https URL (http only on this machine): tokens come from there',
          params: { help: 'write the `issuer` of the metadata of the authorization server' },
        })
        .optional()
        .describe(
          'Issuer of the authorization server. Default: the one that the metadata of the server names (RFC 9728).',
        ),
    })
    .refine(({ clientId, clientSecret }) => clientSecret === undefined || clientId !== undefined, {
      error: '`clientSecret` needs `clientId`',
      params: { help: 'add the `clientId` that the secret belongs to, or remove the secret', at: 'key' },
    })
    .describe(
      'Each user signs in at the server, which then gets the token of that user. Needs `config.mcp.signIn`, and users whom a policy of the route authenticates.',
    ),
);

/** Compiles the credential of the users of a target. Undefined if it cannot be used, which is reported. */
export function oauthCredential(
  config: z.output<typeof oauthSchema>,
  { target, url }: { readonly target: string; readonly url: URL },
  context: CompileContext,
): BackendCredential | undefined {
  const { clientId, clientSecret, scopes, authorizationServer } = config;
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname) && authorizationServer === undefined)
    reportUntrusted(url, context);
  const secret = clientSecret && readText(clientSecret, context.at('clientSecret'));
  const service = signInService.get(context.settings);
  if (service === undefined) {
    context.report(missingService('`oauth`', context.settings));
    return undefined;
  }
  const documents = new DocumentClient(context.settings.callMeter('Policy', 'Oidc'));
  const { database, seal, signIns } = service;
  const client =
    clientId === undefined ? undefined : { id: clientId, ...(secret !== undefined && { secret }) };
  const server = new ProtectedServer(
    { target, url, client, scopes, authorizationServer },
    { database, seal, page: signIns.settings.url },
    documents,
  );
  const remove = signIns.add(server);
  return {
    placement: undefined,
    // Only targets have this method, and they call `read`.
    token: () => undefined,
    read: (ctx) => {
      if (ctx === undefined) return { get: () => undefined };
      const user = userOf(ctx);
      if (user !== undefined) return new TokenOfUser(service, server, user);
      throw new AppError('bad_request', {
        message: hasTokenWithoutSubject(ctx)
          ? 'the token of the caller has no `sub`, so it is not known which user could sign in at the server'
          : 'no policy of the route has authenticated a user who could sign in at the server',
      });
    },
    readFrom: [],
    signsIn: true,
    close: async () => {
      remove();
      await documents.close();
    },
  };
}

function reportUntrusted({ origin }: URL, context: CompileContext): void {
  context.report({
    code: 'AGW0104',
    atKey: true,
    message: `\`oauth\` cannot find out where users sign in: what ${origin} says without TLS is not trusted`,
    help: 'write `https:` in `mcp.host`, or set `authorizationServer`, if nobody else can read on this network',
  });
}

/** A class, as a closure would keep the request. */
class TokenOfUser implements CallerToken {
  readonly #service: SignInService;
  readonly #server: ProtectedServer;
  readonly #user: User;
  #generation = '';

  constructor(service: SignInService, server: ProtectedServer, user: User) {
    this.#service = service;
    this.#server = server;
    this.#user = user;
  }

  async get(): Promise<string> {
    const { value, generation } = await this.#service.tokens.get(this.#user, this.#server);
    this.#generation = generation;
    return value;
  }

  async refused({ status, challenge, isSecond }: Refusal): Promise<boolean> {
    return this.#service.tokens.refused(this.#user, this.#server, this.#generation, {
      status,
      challenge: challengeIn(challenge),
      isSecond,
    });
  }
}
