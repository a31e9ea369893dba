import { jsonIn } from '../../../core/foreign.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type {
  EmbeddingFormat,
  EmbeddingRequest,
  EmbeddingResponse,
  ProviderEmbeddingFormat,
} from '../chat/embedding-format.ts';
import { errorValue } from '../chat/error-body.ts';
import { readProviderError } from '../chat/provider-error.ts';
import { collectBody } from '../collect-body.ts';
import { redactKey } from '../credentials.ts';
import { llmError } from '../errors.ts';
import { membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';

/** A request for embeddings whose client and provider have different formats. */
export interface EmbeddingTranslation {
  readonly kind: 'embeddings';
  readonly client: EmbeddingFormat;
  readonly provider: ProviderEmbeddingFormat;
  /** The client's request, as changed by the configuration and guardrails. */
  readonly request: EmbeddingRequest;
}

/** Translates the provider's reply. Throws an `AppError` (502) for a reply that is not valid. */
export async function translateEmbeddings(
  ctx: RequestContext,
  call: LlmCall,
  { client, provider, request }: EmbeddingTranslation,
  reply: { readonly status: number; readonly headers: HeaderList; readonly body: UpstreamBody },
  keyEncodings: readonly string[],
): Promise<Reply> {
  const { status, headers } = reply;
  headers.delete('content-length');
  const bytes = redactKey(await collectBody(ctx, reply.body, undefined), keyEncodings);
  call.lastTokenAfter = performance.now() - ctx.timings.started;
  headers.set('content-type', 'application/json');
  if (status < 200 || status > 299) {
    const error = readProviderError(errorValue(bytes, status), status);
    return { status: error.status, headers, body: JSON.stringify(client.writeError(error)) };
  }
  const value = jsonIn(bytes.toString('utf8'));
  const response = read(ctx, provider, request, { value, headers });
  call.providerUsage = response.usage ?? null;
  return { status, headers, body: JSON.stringify(client.writeResponse(response, request)) };
}

function read(
  { endpoint }: RequestContext,
  provider: ProviderEmbeddingFormat,
  { texts }: EmbeddingRequest,
  { value, headers }: { readonly value: unknown; readonly headers: HeaderList },
): EmbeddingResponse {
  try {
    const body = membersOf(value);
    if (body === undefined) throw new Error('the response is not a JSON object');
    const response = provider.readResponse(body, headers);
    const { length } = response.vectors;
    if (length !== texts.length) throw new Error(`${length} vectors for ${texts.length} texts`);
    return response;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw llmError('upstream_invalid', 'upstream_failed', UNREADABLE, `${endpoint}: ${why}`);
  }
}

const UNREADABLE = 'failed to process LLM response: it has no valid embeddings';
