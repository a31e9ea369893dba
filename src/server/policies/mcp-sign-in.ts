import { z } from 'zod';
import { definePolicy } from '../kernel/policy.ts';
import { missingService } from '../user-tokens/missing-service.ts';
import { signInService } from '../user-tokens/service.ts';

const schema = z
  .strictObject({})
  .describe(
    'Answers the page on which users sign in at MCP servers, `config.mcp.signIn.url`, and the callback below it. Its route needs no backend.',
  );

/** The pages of sign-ins at MCP servers (`backendAuth.oauth` of targets). */
export const mcpSignIn = definePolicy({
  key: 'mcpSignIn',
  schema,
  answersAll: true,
  trace: { kind: 'mcp_sign_in', stage: 'mcp sign-in' },
  compile(_, context) {
    const service = signInService.get(context.settings);
    if (service === undefined) {
      context.report(missingService('`mcpSignIn`', context.settings));
      return {};
    }
    const { pages, signIns } = service;
    // Traces show a request before the policy sees it.
    context.settings.secretNames.parameters.add('state');
    context.inspection.bounds.push({
      name: 'mcpSignIn.pending',
      at: context.path.join('.'),
      max: context.settings.limits.pendingSignIns,
      used: () => signIns.pending,
    });
    return {
      paths: [pages.path],
      pathsBelow: pages.pathsBelow,
      request: (ctx) => pages.answer(ctx),
      // Before other policies: authorization servers have no credential.
      around: async (ctx, next) => pages.clientDocument(ctx) ?? next(),
    };
  },
});
