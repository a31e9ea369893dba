/** What a backend calls. */
export type Upstreams =
  /** One HTTP service, which gets the requests of clients: policies such as `backendTLS` configure the connections to it. */
  | { readonly kind: 'service'; readonly address: string }
  /** MCP servers. Child processes get no headers. */
  | { readonly kind: 'servers'; readonly getHeaders: boolean }
  /** LLM providers. */
  | { readonly kind: 'providers' }
  /** The admin server of this process. */
  | { readonly kind: 'admin' };
