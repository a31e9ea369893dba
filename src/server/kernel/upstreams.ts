/** What signatures for a service of AWS name. */
export interface AwsScope {
  readonly region: string;
  /** The signing name of the service. */
  readonly service: string;
}

/** What a backend calls. */
export type Upstreams =
  /** One HTTP service, which gets the requests of clients: policies such as `backendTLS` configure the connections to it. */
  | {
      readonly kind: 'service';
      readonly address: string;
      readonly aws?: AwsScope;
      /** Whether `inferenceRouting` finds its address for each request. */
      readonly isPicked?: true;
    }
  /** MCP servers. Child processes get no headers. `haveTls`: all others have settings of TLS. */
  | {
      readonly kind: 'servers';
      readonly getHeaders: boolean;
      readonly haveTls: boolean;
      /** Names of those that clients see in front of the names of their tools. */
      readonly prefixes: readonly string[];
    }
  /** LLM providers. `areOfAws`: all are services of AWS, and know their region. */
  | { readonly kind: 'providers'; readonly areOfAws: boolean }
  /** The admin server of this process. */
  | { readonly kind: 'admin' };
