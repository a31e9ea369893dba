// oidc-provider ships no types; these are the parts that the tests use.
declare module 'oidc-provider' {
  import type { EventEmitter } from 'node:events';
  import type { IncomingMessage, ServerResponse } from 'node:http';

  interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  interface Interaction {
    readonly prompt: { readonly name: string; readonly details: Readonly<Record<string, unknown>> };
    readonly params: Readonly<Record<string, unknown>>;
    readonly session?: { readonly accountId: string };
  }

  interface AccessToken {
    resourceServer: object;
    readonly expiration: number;
    save(): Promise<string>;
  }

  interface TokenRequest {
    readonly oidc: { readonly client: object; readonly params?: Readonly<Record<string, unknown>> };
    body: object;
  }

  export class Provider extends EventEmitter {
    constructor(issuer: string, configuration: object);
    readonly Grant: new (owner: {
      accountId: string;
      clientId: string;
    }) => Grant;
    readonly AccessToken: new (
      token: object,
    ) => AccessToken;
    readonly ResourceServer: new (
      audience: string,
      settings: object,
    ) => object;
    registerGrantType(
      name: string,
      handler: (ctx: TokenRequest) => Promise<void>,
      parameters: readonly string[],
    ): void;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
