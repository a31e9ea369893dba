import { membersOf, textIn } from '../../core/foreign.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { McpBackendConfig } from './backend-config.ts';
import { TargetCredentials } from './connection/caller-credential.ts';
import type { Target, TargetKind } from './connection/target.ts';
import { compileTargetPolicies } from './connection/target-policies.ts';
import { type EndpointConfig, endpointText } from './targets/endpoint.ts';
import { targetKinds } from './targets/index.ts';

/** Compiles one entry of `targets[]`. Reports a problem if it does not have exactly one kind. */
export function compileTarget(config: McpBackendConfig['targets'][number], context: CompileContext): Target {
  const present = targetKinds.filter(({ key }) => config[key] !== undefined);
  const keys = targetKinds.map(({ key }) => `\`${key}\``).join(' or ');
  const [kind] = present;
  if (present.length !== 1 || kind === undefined) {
    context.report({
      code: 'AGW0105',
      message:
        present.length === 0
          ? `target \`${config.name}\` has no kind`
          : `target \`${config.name}\` has more than one kind`,
      label: `expected exactly one of ${keys}`,
      help:
        present.length === 0
          ? 'add `stdio: { cmd: … }` for a local command, or `mcp: { host: https://… }` for a remote server'
          : 'keep one of them, and make a target of its own of each other',
    });
    return {
      name: config.name,
      limits: context.settings.limits,
      resumable: false,
      endpoint: undefined,
      open: () => Promise.reject(new Error('not configured')),
      close: () => Promise.resolve(),
    };
  }
  const { name, policies } = config;
  if (policies !== undefined && (kind as TargetKind).hasPolicies !== true)
    context.at('policies').report({
      code: 'AGW0105',
      message: `\`policies\` and \`${kind.key}\` cannot be used together`,
      label: 'for targets that are reached over HTTP',
      help: 'remove `policies`',
    });
  const host = textIn(membersOf(config[kind.key])['host']);
  const { mcp: remote } = config;
  const signIn = remote && { target: name, url: signInUrl(remote, policies?.backendTLS !== undefined) };
  const compiled = policies && compileTargetPolicies(policies, host, signIn, context.at('policies'));
  const server = JSON.stringify([name, kind.key, config[kind.key], policies?.backendTLS]);
  const credentials = new TargetCredentials(server, compiled?.credentials);
  const target = (kind as TargetKind).compile(name, config[kind.key], context.at(kind.key), {
    tls: compiled?.tls,
    credentials,
  });
  if ((kind as TargetKind).hasPolicies !== true) return target;
  const close = async (): Promise<void> => {
    await Promise.all([target.close(), credentials.close()]);
  };
  return { ...target, credentials, close };
}

/** The URL of a server at which users sign in. */
function signInUrl(config: EndpointConfig, hasTls: boolean): string {
  const text = endpointText(config, hasTls);
  const hasPath = text.endsWith('/') || URL.parse(text)?.pathname !== '/';
  return hasPath ? text : new URL('/mcp', text).href;
}
