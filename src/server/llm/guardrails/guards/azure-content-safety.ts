import { z } from 'zod';
import { mapping, nonEmpty } from '../../../../core/schema/mapping.ts';
import { requireInstalled } from '../../../credentials/cloud/cloud-package.ts';
import { entraTokens } from '../../../credentials/cloud/entra-token.ts';
import { GuardrailError, tooLongToCheck } from '../../../guardrails/outcome.ts';
import type { CompileContext } from '../../../kernel/compile-context.ts';
import { readCredential } from '../../../transport/services/backend-credential.ts';
import { defineGuard, type Guard } from '../guard.ts';
import { type Ask, type Authorize, hostedGuard, keyPolicies } from '../hosted-service.ts';

const apiVersion = z.string().regex(/^[A-Za-z0-9.-]+$/, { error: 'expected a version such as `2024-09-01`' });

const schema = z.lazy(() =>
  mapping('Rejects texts in which Azure AI Content Safety finds a match.', {
    endpoint: z
      .string()
      // A placeholder such as `<resource-name>` is reported when the guardrail is compiled.
      .regex(/^(?:https?:\/\/)?(?:[A-Za-z0-9.-]|<[\w-]+>)+(?::\d{1,5})?\/?$/, {
        error: 'expected a host such as `name.cognitiveservices.azure.com`',
      })
      .describe('Host of the Content Safety resource, such as `name.cognitiveservices.azure.com`.'),
    analyzeText: mapping('Rejects texts about hate, self-harm, sex or violence, and matches of blocklists.', {
      severityThreshold: z
        .int()
        .min(0)
        .max(7)
        .default(2)
        .describe('Severity from which on a text is rejected.'),
      apiVersion: apiVersion.default('2024-09-01').describe('Version of the API.'),
      blocklistNames: z.array(nonEmpty).default([]).describe('Blocklists; any match is rejected.'),
      haltOnBlocklistHit: z
        .boolean()
        .optional()
        .describe('Whether the analysis stops at the first match of a blocklist.'),
    }).optional(),
    detectJailbreak: mapping('Rejects attempts to escape the rules of a model. For requests only.', {
      apiVersion: apiVersion.default('2024-02-15-preview').describe('Version of the API.'),
    }).optional(),
    policies: keyPolicies
      .optional()
      .describe('Key of the resource. Default: a token of Microsoft Entra ID, from the default credentials.'),
  }),
);

/** Azure AI Content Safety REST reference, "Text Operations - Analyze Text". */
const analysis = z.object({
  blocklistsMatch: z.array(z.unknown()).default([]),
  categoriesAnalysis: z.array(z.object({ severity: z.number() })),
});

/** "Text Operations - Detect Text Jailbreak". */
const jailbreak = z.object({ jailbreakAnalysis: z.object({ detected: z.boolean() }) });

/** Characters of one call (both references), and how many calls one check may make. */
const ANALYZED_CHARACTERS = 10_000;
const JAILBREAK_CHARACTERS = 1_000;
const MAX_CALLS = 64;

export const azureContentSafety = defineGuard({
  key: 'azureContentSafety',
  schema,
  hasScope: false,
  hasRejection: true,
  compile(config, item, context) {
    const { phase, rejection } = item;
    const { analyzeText, endpoint } = config;
    const detectJailbreak = phase === 'request' ? config.detectJailbreak : undefined;
    if (analyzeText === undefined && detectJailbreak === undefined) {
      const choices = phase === 'request' ? '`analyzeText` or `detectJailbreak`' : '`analyzeText`';
      context.report({ code: 'AGW0103', message: `this guardrail checks nothing: set ${choices}` });
      return undefined;
    }
    const placeholder = /<[\w-]+>/.exec(endpoint)?.[0];
    if (placeholder !== undefined) {
      context.at('endpoint').report({
        code: 'AGW0303',
        message: `\`${placeholder}\` is a placeholder, not part of a host name`,
        label: 'every call would be rejected, because the service cannot be asked',
        help: 'replace it with the name of the Content Safety resource',
      });
      return unusable(context, `the endpoint has the placeholder \`${placeholder}\``);
    }
    const authorize = authorizeOf(config.policies, context);
    if (authorize === undefined) return undefined;
    const { origin } = new URL(/^https?:/.test(endpoint) ? endpoint : `https://${endpoint}`);

    async function isHarmful(ask: Ask, text: string): Promise<boolean> {
      if (analyzeText === undefined) return false;
      const { severityThreshold, blocklistNames, haltOnBlocklistHit } = analyzeText;
      const path = `/contentsafety/text:analyze?api-version=${analyzeText.apiVersion}`;
      const lists = blocklistNames.length === 0 ? {} : { blocklistNames };
      const results = await Promise.all(
        piecesOf(text, ANALYZED_CHARACTERS).map((piece) =>
          ask(
            path,
            { text: piece, ...lists, ...(haltOnBlocklistHit !== undefined && { haltOnBlocklistHit }) },
            analysis,
          ),
        ),
      );
      return results.some(
        ({ blocklistsMatch, categoriesAnalysis }) =>
          blocklistsMatch.length > 0 ||
          categoriesAnalysis.some(({ severity }) => severity >= severityThreshold),
      );
    }

    async function isJailbreak(ask: Ask, text: string): Promise<boolean> {
      if (detectJailbreak === undefined) return false;
      const path = `/contentsafety/text:detectJailbreak?api-version=${detectJailbreak.apiVersion}`;
      const results = await Promise.all(
        piecesOf(text, JAILBREAK_CHARACTERS).map((piece) => ask(path, { text: piece }, jailbreak)),
      );
      return results.some(({ jailbreakAnalysis }) => jailbreakAnalysis.detected);
    }

    return hostedGuard(
      {
        kind: 'azureContentSafety',
        origin,
        authorize,
        async check(ask, texts) {
          const text = texts.map(({ content }) => content).join('\n');
          const found = await Promise.all([isHarmful(ask, text), isJailbreak(ask, text)]);
          return found.includes(true) ? { kind: 'reject', rejection } : { kind: 'pass' };
        },
      },
      item,
      context,
    );
  },
});

/** A guardrail whose service cannot be asked, so that no call passes it. */
function unusable(context: CompileContext, why: string): Omit<Guard, 'rejection'> {
  return {
    place: context.place(),
    kind: 'azureContentSafety',
    name: 'azureContentSafety',
    sees: ({ content }) => content !== '',
    check: () => Promise.reject(new GuardrailError(why)),
    close: () => Promise.resolve(),
  };
}

function authorizeOf(
  policies: z.output<typeof keyPolicies> | undefined,
  context: CompileContext,
): Authorize | undefined {
  if (policies !== undefined) {
    const key = readCredential(policies.backendAuth.key, context.at('policies', 'backendAuth', 'key'));
    return key === undefined ? undefined : () => ({ 'ocp-apim-subscription-key': key });
  }
  if (!requireInstalled('@azure/identity', context, 'without `backendAuth`, this guardrail'))
    return undefined;
  const tokens = entraTokens('https://cognitiveservices.azure.com/.default');
  return async () => ({ authorization: `Bearer ${await tokens.value()}` });
}

/** Parts of a text of at most `size` Unicode characters. */
function piecesOf(text: string, size: number): string[] {
  const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu')) ?? [];
  if (pieces.length > MAX_CALLS) throw tooLongToCheck('the whole of the texts', size * MAX_CALLS);
  return pieces;
}
