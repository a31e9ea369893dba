/**
 * What of agentgateway's documentation (standalone) and examples does not load, and why. Blocks are fragments, some of which
 * agentgateway does not load either.
 */
export const REFUSED_FILES: readonly (readonly [name: string, why: string])[] = [
  [
    'example `llm-standalone-epp`',
    '`services`, `inferenceRouting`: endpoint pickers of Kubernetes inference pools are not supported',
  ],
  ['example `traffic-aws-agentcore`', '`aws`: Amazon Bedrock AgentCore is not supported as a backend'],
  [
    'example `traffic-egress-proxy` (3 files)',
    '`tunnelProtocol: connect`, `dynamic` backends, `mode: dynamicCa`: forward proxying is not built',
  ],
  [
    'example `traffic-spiffe`',
    '`spiffe`: the SPIFFE Workload API is not supported: set `cert`, `key` and `root` to files',
  ],
  [
    'example `mcp-authorization`; six blocks of JWT authentication',
    'they name `manifests/jwt/pub-key` of the repository of agentgateway: they load where that file is',
  ],
  ['block of conditional policies', "`extProc`: Envoy's external processing is not supported"],
  [
    'blocks of backend authentication, external authorization, cert-manager, OpenAPI',
    'they name files such as `/certs/tls.crt`: load where these are',
  ],
  ['block of resiliency; block of virtual MCP', 'fragments: a route without backend or without gateway'],
  [
    'two blocks of Azure Content Safety',
    '`<resource-name>` is a placeholder and no valid host name; one block sets the guardrail on the route instead of the model',
  ],
  [
    'two blocks of LLM providers',
    'a `custom` provider, `vertex` and `azure` need an address, a project or a resource, which the blocks leave out',
  ],
  ['block of OpenAPI with an inline document', '`{"openapi":"3.0.0",...}` is not JSON'],
];
