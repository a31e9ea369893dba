import type { z } from 'zod';
import { nonEmpty } from '../../../core/schema/mapping.ts';
import type { CompileContext, NamedBackend } from '../../kernel/compile-context.ts';
import { backendTlsSchema } from '../tls/backend-tls.ts';
import { backendAuthSchema } from './backend-credential.ts';
import {
  compileServicePolicies,
  type ServiceConnection,
  type servicePoliciesSchema,
} from './service-policies.ts';

/** Where a service is: its address, or a top-level backend that has it. */
export const serviceFields = {
  host: nonEmpty
    .optional()
    .describe('Address of the service: `host:port`, a URL without a path, or `unix:/path/of/socket`.'),
  backend: nonEmpty
    .optional()
    .describe(
      'Instead of `host`: name of one of the top-level `backends`, a `host`. Its `policies` apply unless they are set here.',
    ),
};

/** For the objects that have `serviceFields`. */
export const serviceMeta = {
  elsewhere: {
    service: 'services exist only with a Kubernetes control plane: write `host: name:port`',
    invalid: 'it marks a reference that could not be resolved: write `host: name:port`',
  },
};

interface Reference {
  readonly host?: string | undefined;
  readonly backend?: string | undefined;
}

/** A check for zod: exactly one of `host` and `backend` is set. */
export function isOneReference({ value, issues }: z.core.ParsePayload<Reference>): void {
  if ((value.host === undefined) !== (value.backend === undefined)) return;
  issues.push({
    code: 'custom',
    input: value,
    message: 'expected exactly one of `host` and `backend`',
    params: { code: value.host === undefined ? 'AGW0103' : 'AGW0105' },
  });
}

type ServicePolicies = z.output<typeof servicePoliciesSchema>;

/** A service that a policy calls. */
export interface Service {
  readonly host: string;
  /** The context of the address, for its problems. */
  readonly at: CompileContext;
  readonly connection: ServiceConnection;
}

/** Finds a service and compiles its policies. Reports a reference that cannot be used, and then returns undefined. */
export function compileService(
  { host, backend, policies = {} }: Reference & { readonly policies?: ServicePolicies | undefined },
  context: CompileContext,
): Service | undefined {
  const connection = compileServicePolicies(policies, context.at('policies'));
  if (host !== undefined) return { host, at: context.at('host'), connection };
  const at = context.at('backend');
  const referred = backend === undefined ? undefined : referredHost(backend, at);
  if (referred === undefined) return undefined;
  const { backendTLS, backendAuth } = referred;
  const inherited = compileServicePolicies(
    {
      ...(policies.backendTLS === undefined && backendTLS && { backendTLS }),
      ...(policies.backendAuth === undefined && backendAuth && { backendAuth }),
    },
    at,
  );
  return { host: referred.host, at, connection: { ...inherited, ...connection } };
}

/** The address and policies of a top-level backend. Reports one that is no `host`, or has other policies. */
export function referredHost(
  reference: string,
  at: CompileContext,
): (Pick<ServicePolicies, 'backendTLS' | 'backendAuth'> & { readonly host: string }) | undefined {
  const found = at.backend(reference);
  if (found === undefined) return undefined;
  if (found.kind !== 'host' || found.connectsTo.kind !== 'service') {
    at.report({
      code: 'AGW0104',
      message: `the backend \`${found.name}\` is of the kind \`${found.kind}\`, but a service is a \`host\``,
      help: 'name a backend with `host`, or write the address itself: `host: name:port`',
    });
    return undefined;
  }
  const backendTLS = backendTlsSchema.optional().safeParse(found.policies['backendTLS']);
  const backendAuth = backendAuthSchema.optional().safeParse(keyOf(found));
  const unused = Object.keys(found.policies).filter((key) => key !== 'backendTLS' && key !== 'backendAuth');
  if (!backendAuth.success) unused.push('backendAuth');
  for (const key of unused)
    at.report({
      code: 'AGW0104',
      message: `the policy \`${key}\` of the backend \`${found.name}\` does not apply to calls of a service`,
      help: 'write the address itself (`host: name:port`), or name a backend with `backendTLS` and `backendAuth.key` only',
    });
  return { host: found.connectsTo.address, backendTLS: backendTLS.data, backendAuth: backendAuth.data };
}

/** `backendAuth` of a backend, without the list of further credentials if it is empty. */
function keyOf({ policies: { backendAuth } }: NamedBackend): unknown {
  if (typeof backendAuth !== 'object' || backendAuth === null) return backendAuth;
  const { credentials, ...rest } = backendAuth as { readonly credentials?: readonly unknown[] };
  return credentials?.length === 0 ? rest : backendAuth;
}
