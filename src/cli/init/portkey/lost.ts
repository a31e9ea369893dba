import { membersOf } from '../../../core/foreign.ts';
import { LostParts } from '../lost-parts.ts';

const ENTRA = 'a token of Microsoft Entra ID is taken from the machine';
const IN_REQUESTS = 'set by clients in their requests, or in `requestHeaders` of a model';

/** Why members of a config object have no counterpart. */
const REASONS: Readonly<Record<string, string>> = {
  metadata: 'calls are labelled by key, user and expressions of the log (docs/observability.md)',
  trace_id: 'traces have ids of their own (docs/observability.md)',
  cb_config: 'a target that fails is left alone for a while with `health.eviction` of its model',
  use_retry_after_header: 'repetitions do not wait for `retry-after`',
  max_retries: 'repetitions are `retry.attempts`',
  strict_open_ai_compliance: 'answers keep the members that the provider adds',
  azure_ad_token: ENTRA,
  azure_auth_mode: ENTRA,
  azure_managed_client_id: ENTRA,
  azure_entra_client_id: ENTRA,
  azure_entra_client_secret: ENTRA,
  azure_entra_tenant_id: ENTRA,
  aws_role_arn: '`auth.aws.assumeRole` of a model',
  aws_external_id: '`auth.aws.assumeRole` of a model',
  aws_auth_type: 'without keys, the default chain of AWS finds credentials',
  vertex_service_account_json:
    'Google credentials are found as by its own tools: GOOGLE_APPLICATION_CREDENTIALS',
  forward_headers:
    'headers of clients reach the provider or not as for all calls; `requestHeaders` of a model sets and removes some',
  openai_beta: IN_REQUESTS,
  prompt_id: 'prompts are kept by their programs, or added with `policies.ai.prompts` of a route',
  input_mutators: 'texts are changed by guardrails that mask, or by a webhook (docs/guardrails.md)',
  output_mutators: 'texts are changed by guardrails that mask, or by a webhook (docs/guardrails.md)',
};

/** What is lost if these are: checks of texts, and limits of calls. */
const isCheck = (key: string): boolean =>
  /guardrail|hook|mutator|limit|budget|allowed|blocked|moderation/i.test(key);

/** What has no counterpart in a config object. */
export class Lost extends LostParts {
  /** Every member of a section that is not `known`. */
  addRest(section: unknown, known: readonly string[], { prefix = '', owner = '' } = {}): void {
    for (const [key, value] of Object.entries(membersOf(section))) {
      if (known.includes(key) || value === null || value === undefined) continue;
      const reason = Object.hasOwn(REASONS, key) ? REASONS[key] : undefined;
      this.add(`${prefix}${key}`, reason ?? 'no counterpart, or set it by hand', {
        owner,
        isWarning: isCheck(key),
      });
    }
  }
}
