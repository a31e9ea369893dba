import { z } from 'zod';
import { choice, mapping } from '../../core/schema/mapping.ts';
import { bundlesSchema } from './bundles/bundle-config.ts';
import { targetPoliciesSchema } from './connection/target-policies.ts';
import { toolViewSchema } from './names/tool-view.ts';
import { targetKinds } from './targets/index.ts';
import { toolPinningSchema } from './tool-pinning/compile.ts';
import { toolSearchSchema } from './tool-search/tool-search.ts';

// Lower-case labels joined by dots; `_` and `+` separate a target's name from the names of its items.
export const TARGET_NAME = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `Object.fromEntries` does not type keys
const kindSchemas = Object.fromEntries(targetKinds.map((kind) => [kind.key, kind.schema.optional()])) as {
  [Kind in (typeof targetKinds)[number] as Kind['key']]: z.ZodOptional<Kind['schema']>;
};

const REMOTE = 'write `mcp: { host: https://…/mcp }` for a remote server';

const targetSchema = z
  .strictObject({
    name: z
      .string()
      .max(253)
      .regex(TARGET_NAME, { error: 'expected lower-case letters, digits, `-` and `.`' })
      .describe('Name of the target. Prefixes the names of its tools when there are several targets.'),
    ...kindSchemas,
    policies: targetPoliciesSchema.optional(),
    tools: toolViewSchema.optional(),
  })
  .meta({
    elsewhere: {
      url: REMOTE,
      http: REMOTE,
      streamableHttp: REMOTE,
      command: 'write `stdio: { cmd: …, args: [ … ] }`',
    },
  });

/** Fields of an MCP backend; also of the simplified top-level `mcp`. */
export const mcpFields = {
  targets: z.array(targetSchema).min(1).describe('MCP servers that this endpoint offers together.'),
  statefulMode: choice(
    'Whether clients get sessions. `stateless`: each request runs in a session at the targets of its own, which ends with it, so any process can answer it; servers can send neither requests nor messages outside a response, and one process of a stdio target serves all requests. Clients of revision 2026-07-28 never have sessions.',
    ['stateful', 'stateless'],
    'stateful',
  ),
  prefixMode: choice(
    'Whether tools are named `target_tool`: with several targets only, always, or never.',
    ['conditional', 'always', 'never'],
    'conditional',
  ),
  failureMode: choice(
    'What happens when a target fails. `failOpen`: sessions continue with the other targets. `failClosed`: every session fails.',
    ['failOpen', 'failClosed'],
    'failOpen',
  ),
  toolPinning: toolPinningSchema,
  toolSearch: toolSearchSchema.optional(),
  bundles: bundlesSchema.default([]),
  dnsRebindingProtection: z
    .union([z.literal('auto'), z.boolean()])
    .default('auto')
    .describe(
      'Whether to check Host and Origin against configured host names. `auto`: on connections to a loopback address. `true`: on all connections. `false`: never.',
    ),
};

export const mcpBackendSchema = mapping('One or more MCP servers behind one endpoint.', mcpFields);
export type McpBackendConfig = z.output<typeof mcpBackendSchema>;

/** Whether names of tools have the name of their target as a prefix. */
export const hasPrefixes = ({ prefixMode, targets }: McpBackendConfig): boolean =>
  prefixMode === 'always' || (prefixMode === 'conditional' && targets.length > 1);
