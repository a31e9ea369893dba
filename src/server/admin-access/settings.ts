import { z } from 'zod';
import { list, nonEmpty } from '../../core/schema/mapping.ts';
import { isHeaderName } from '../kernel/request/header-list.ts';
import { networkSchema } from '../kernel/request/networks.ts';
import { ROLES, type Role } from './roles.ts';

const header = z.string().refine(isHeaderName, { error: 'expected a header name' });

const names = (doc: string) => list(doc, nonEmpty);

/** `config.adminRoles`. */
export const adminRolesSchema = z.lazy(() =>
  z
    .strictObject({
      claim: nonEmpty
        .optional()
        .describe(
          'CEL expression for the names of a caller that a policy of `ui` has authenticated: a string or a list of strings, such as `jwt.groups`, `basicAuth.username` or `apiKey.role`.',
        )
        .meta({ examples: ['jwt.groups', 'jwt.realm_access.roles', 'basicAuth.username'] }),
      viewer: names(
        'Names that may see the pages and figures, but no contents of requests and no configuration.',
      ),
      operator: names(
        'Names that may also see contents and the configuration, trace, change log levels, profile, send requests and stop the gateway.',
      ),
      editor: names('Names that may also change the configuration, virtual keys and sign-ins.'),
      proxy: z
        .strictObject({
          addresses: z
            .array(networkSchema)
            .min(1)
            .describe(
              'Addresses of the proxy, or its network, as in `10.0.0.0/8`. Headers of connections from elsewhere count for nothing.',
            ),
          user: header
            .transform((name) => name.toLowerCase())
            .default('x-forwarded-user')
            .describe('Header with the name of the user.'),
          groups: header
            .transform((name) => name.toLowerCase())
            .default('x-forwarded-groups')
            .describe('Header with the names of the user.'),
          separator: z
            .string()
            .regex(/^[!-/:-@[-`{-~]$/, { error: 'expected one character of punctuation, such as `,`' })
            .default(',')
            .describe('Character between two names in that header, which no name contains.'),
        })
        .optional()
        .describe(
          'A proxy in front of the address of the admin server that signs people in and replaces both headers in all requests.',
        ),
      local: z
        .enum(['none', 'viewer', 'operator', 'editor'])
        .default('none')
        .describe(
          'Role of programs and people of this machine that connect to the admin server themselves, through no proxy: everybody who can use the machine. A unix socket, which only the user of the gateway can open, always has the role `editor`.',
        ),
    })
    .superRefine(reportSeparators)
    .describe(
      'Roles of the callers of the admin server and its pages. Without it, all callers that are let in may do everything. With it, a caller has the highest role that one of its names gives, and callers without a role are refused.',
    ),
);

/** Names of the header that would be read as two. */
function reportSeparators(
  {
    proxy,
    ...roles
  }: { readonly proxy?: { readonly separator: string } | undefined } & Record<Role, string[]>,
  context: z.RefinementCtx,
): void {
  if (proxy === undefined) return;
  const { separator } = proxy;
  for (const role of ROLES)
    for (const [index, name] of roles[role].entries())
      if (name.includes(separator))
        context.addIssue({
          code: 'custom',
          path: [role, index],
          message: `no name of the proxy contains \`${separator}\`, which is between two names of its header; let the proxy send another character there, and set \`proxy.separator\` to it`,
        });
}

export type AdminRoles = z.output<typeof adminRolesSchema>;
