// Configurations of each proxy for `bench http`.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_PORTS } from './harness/own-ports.mjs';

const KEY = 'bench-key-0123456789';

/** Request headers that give every policy below work to do, and let the request pass. */
const CLIENT_HEADERS = {
  accept: 'application/json',
  'user-agent': 'bench/1.0',
  origin: 'https://app.example.com',
  'x-api-key': KEY,
  'x-user': 'a',
};

export const GET = { method: 'GET', headers: CLIENT_HEADERS };
export const POST = {
  method: 'POST',
  headers: { ...CLIENT_HEADERS, 'content-type': 'application/json' },
  body: JSON.stringify({ model: 'bench', messages: [{ role: 'user', content: 'x'.repeat(140) }] }),
};

/** Policies of a route, in the order in which the cases add them. */
export const POLICIES = {
  authorization: { rules: ['request.headers["x-user"] == "a"'] },
  cors: { allowOrigins: ['https://app.example.com'], allowMethods: ['GET', 'POST'] },
  apiKey: {
    mode: 'strict',
    keys: [{ key: KEY, metadata: { team: 'a' } }],
    location: { header: { name: 'x-api-key' } },
  },
  localRateLimit: [{ maxTokens: 1_000_000_000, tokensPerFill: 1_000_000, fillInterval: '1s' }],
  timeout: { requestTimeout: '30s', backendRequestTimeout: '20s' },
  requestHeaderModifier: { set: { 'x-gateway': 'agctl' }, remove: ['x-user'] },
  responseHeaderModifier: { set: { 'x-gateway': 'agctl' }, remove: ['x-served-by'] },
  mcpAuthorization: { rules: ['mcp.tool.name == "echo"'] },
};

/** Counted as policies nine and ten, because they run for every request too. */
export const LOG_POLICIES = {
  'accessLog.add': { add: { path: 'request.path', agent: 'request.headers["user-agent"]' } },
  'accessLog.filter': { filter: 'response.code < 600' },
};

export const POLICY_NAMES = [...Object.keys(POLICIES), ...Object.keys(LOG_POLICIES)];

/** A configuration with these policies, as JSON, which is valid YAML. `extAuthz` calls the given service. */
export function gatewayConfig(upstream, names, extAuthz, tls) {
  const pick = (table) => Object.entries(table).filter(([name]) => names.includes(name));
  const policies = {
    ...Object.fromEntries(pick(POLICIES)),
    ...(extAuthz === undefined ? {} : { extAuthz: { host: extAuthz, protocol: { http: {} } } }),
  };
  const accessLog = Object.assign({}, ...pick(LOG_POLICIES).map(([, settings]) => settings));
  return {
    config: OWN_PORTS,
    ...(Object.keys(accessLog).length === 0 ? {} : { frontendPolicies: { accessLog } }),
    gateways: {
      default: {
        port: 0,
        ...(tls === undefined ? { protocol: 'HTTP' } : { tls }),
        address: '127.0.0.1',
        routes: [
          {
            name: 'bench',
            ...(Object.keys(policies).length === 0 ? {} : { policies }),
            backends: [{ host: upstream }],
          },
        ],
      },
    },
  };
}

/** One process, persistent connections on both sides, no access log: the fastest configuration of these two. */
export function nginxArgs(folder, port, upstream, tls) {
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr crit;
     events { worker_connections 1024; }
     http {
       access_log off; keepalive_requests 1000000000; client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy;
       fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
       upstream mock { server ${upstream}; keepalive 128; keepalive_requests 1000000000; }
       server {
         listen 127.0.0.1:${port}${tls === undefined ? '' : ' ssl http2'};
         ${tls === undefined ? '' : `ssl_certificate ${tls.cert}; ssl_certificate_key ${tls.key};`}
         location / { proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection ""; }
       }
     }\n`,
  );
  return ['-p', folder, '-c', file];
}

export function haproxyArgs(folder, port, upstream, tls) {
  const pem = join(folder, 'haproxy.pem');
  if (tls !== undefined) writeFileSync(pem, readFileSync(tls.cert) + readFileSync(tls.key));
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 1000
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend bench
  bind 127.0.0.1:${port}${tls === undefined ? '' : ` ssl crt ${pem} alpn h2,http/1.1`}
  default_backend mock
backend mock
  server mock ${upstream}
`,
  );
  return ['-db', '-q', '-f', file];
}
