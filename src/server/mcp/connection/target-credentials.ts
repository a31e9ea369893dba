import { REDACTED } from '../../../core/credentials.ts';
import { AppError, messageOf } from '../../../core/errors.ts';
import type { BackendCredential } from '../../credentials/backend-auth.ts';
import { awsScopeOf } from '../../credentials/cloud/aws.ts';
import { type OwnRequest, placeInOwn } from '../../credentials/placement.ts';
import type { CallerToken, Refusal } from '../../credentials/subject-token.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import { FieldNames, HeaderList, withoutFields } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { CredentialOrigin } from '../../kernel/request/shared-slots.ts';
import type { SignRequest } from '../../transport/host-backend.ts';
import type { Upstream } from '../../transport/upstream/upstream.ts';
import type { UpstreamRequest } from '../../transport/upstream/upstream-request.ts';
import { SignInRequired } from '../../user-tokens/sign-in-required.ts';
import type { CallerCredential, CompiledCredentials } from './caller-credential.ts';
import { TargetFailure } from './target-failure.ts';

/** Changes headers of the client's before the credentials are added. */
export type ChangeHeaders = (headers: HeaderList) => void;

/** A request, whose path and headers steps change. */
interface Draft extends OwnRequest {
  readonly method: string;
  readonly authority: string;
  readonly body: string | Buffer | null;
}

/** Headers of a signature of AWS: those of a client would belong to another request. */
const OF_SIGNATURE = ['x-amz-date', 'x-amz-security-token', 'x-amz-content-sha256', 'x-amz-region-set'];

/** Compiles the credentials of a target. `changesOf` are its header changes for a request. */
export function targetCredentials(
  credentials: readonly BackendCredential[] | undefined,
  changesOf: ((request: RequestContext | undefined) => ChangeHeaders) | undefined,
  context: CompileContext,
): CompiledCredentials | undefined {
  if (credentials === undefined && changesOf === undefined) return undefined;
  const compiled = (credentials ?? []).map((each) =>
    'sign' in each ? each : { ...each, place: placeInOwn(each.placement, context) },
  );
  const replaced = credentials === undefined ? undefined : replacedHeaders(credentials);
  const origin = credentials && originOf(credentials);
  return {
    readsRequest:
      changesOf !== undefined || compiled.some((each) => !('sign' in each) && each.readFrom !== undefined),
    signsIn: compiled.some((each) => 'signsIn' in each && each.signsIn === true),
    of(request, ofRoute) {
      const sent = new SentTokens(request?.observer);
      const steps = compiled.map((each) =>
        'sign' in each ? signing(each.sign) : step(tokenOf(each, request), each.place, sent),
      );
      const withheld =
        replaced !== undefined && ofRoute !== undefined
          ? new FieldNames([...replaced, ...ofRoute])
          : replaced;
      return new SentCredential(steps, changesOf?.(request), withheld, sent, origin);
    },
    async close() {
      for (const each of compiled) if ('close' in each) await each.close?.();
    },
  };
}

interface Step {
  readonly keys: readonly string[];
  add(draft: Draft): Promise<void>;
  readonly refused?: CallerToken['refused'];
}

/** A class, as a closure would keep the request. */
class SentCredential implements CallerCredential {
  readonly origin: CredentialOrigin | undefined;
  readonly #steps: readonly Step[];
  readonly #change: ChangeHeaders | undefined;
  readonly #replaced: FieldNames | undefined;
  readonly #sent: SentTokens;

  constructor(
    steps: readonly Step[],
    change: ChangeHeaders | undefined,
    replaced: FieldNames | undefined,
    sent: SentTokens,
    origin: CredentialOrigin | undefined,
  ) {
    this.origin = origin;
    this.#steps = steps;
    this.#change = change;
    this.#replaced = replaced;
    this.#sent = sent;
  }

  get keys(): readonly string[] {
    return this.#steps.flatMap(({ keys }) => keys);
  }

  async complete(given: UpstreamRequest, { authority, address }: Upstream): Promise<UpstreamRequest> {
    const { method, body, path, headers, signal } = given;
    const draft: Draft = {
      method,
      authority,
      path,
      headers: new HeaderList(
        this.#replaced === undefined ? headers : withoutFields(headers, this.#replaced),
      ),
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : null,
    };
    this.#change?.(draft.headers);
    try {
      for (const { add } of this.#steps) await unlessAborted(add(draft), signal);
    } catch (error) {
      throw signal?.aborted === true ? error : withoutCredential(address, error);
    }
    return { ...given, path: draft.path, headers: draft.headers.raw };
  }

  get refused(): CallerCredential['refused'] {
    const step = this.#steps.find(({ refused }) => refused !== undefined);
    return step && ((refusal, upstream) => renewed(step, refusal, upstream));
  }

  clean(text: string): string {
    return this.#sent.clean(text);
  }
}

const originOf = (credentials: readonly BackendCredential[]): CredentialOrigin =>
  credentials.some((each) => !('sign' in each) && each.readFrom !== undefined) ? 'caller' : 'gateway';

async function renewed({ refused }: Step, refusal: Refusal, { address }: Upstream): Promise<boolean> {
  try {
    return (await refused?.(refusal)) ?? false;
  } catch (error) {
    throw withoutCredential(address, error);
  }
}

const signing = (sign: SignRequest): Step => ({
  keys: [],
  add: (draft) => sign({ ...draft, aws: awsScopeOf(draft.authority) }),
});

/** Headers that the server gets from the gateway alone: where credentials are, and where those of the client were read. */
function replacedHeaders(credentials: readonly BackendCredential[]): FieldNames {
  return new FieldNames([
    'authorization',
    ...credentials.flatMap((each) =>
      'sign' in each
        ? OF_SIGNATURE
        : [each.placement?.header?.name ?? 'authorization', ...(each.readFrom ?? [])],
    ),
  ]);
}

/** The token of a caller; what its request lacks is reported when it is needed. */
function tokenOf(
  { read }: Exclude<BackendCredential, { readonly sign: SignRequest }>,
  request: RequestContext | undefined,
): CallerToken {
  try {
    return read(request);
  } catch (error) {
    const failed = Promise.reject<string>(error);
    // Nobody may ask for it.
    failed.catch(() => undefined);
    return { get: () => failed };
  }
}

function step(
  token: CallerToken,
  place: (request: OwnRequest, credential: string) => void,
  sent: SentTokens,
): Step {
  return {
    keys: token.key === undefined ? [] : [token.key],
    async add(draft) {
      const value = await token.get();
      if (value === undefined) return;
      sent.add(value);
      place(draft, value);
    },
    ...(token.refused !== undefined && {
      refused: (refusal) => token.refused?.(refusal) ?? Promise.resolve(false),
    }),
  };
}

/** Shorter ones occur in other text too. The errors that are logged omit those of the configuration in any case. */
const SHORTEST = 16;

/** Tokens that a caller's requests carried: the server may repeat them in errors. The latest few, as they are renewed. */
class SentTokens {
  readonly #observer: RequestObserver | undefined;
  readonly #tokens = new Set<string>();

  constructor(observer: RequestObserver | undefined) {
    this.#observer = observer;
  }

  add(token: string): void {
    if (this.#tokens.has(token)) return;
    const [oldest] = this.#tokens;
    if (oldest !== undefined && this.#tokens.size >= 8) this.#tokens.delete(oldest);
    this.#tokens.add(token);
    this.#observer?.hide(token, true);
  }

  clean(text: string): string {
    let clean = text;
    for (const token of this.#tokens) if (token.length >= SHORTEST) clean = clean.replaceAll(token, REDACTED);
    return clean;
  }
}

/** The failure of a request that was not sent, because its credential could not be had. */
function withoutCredential(address: string, error: unknown): TargetFailure {
  const why = 'the gateway has no credential for the server';
  const reason = error instanceof AppError ? `: ${error.message.replace(/^upstream call failed: /, '')}` : '';
  const detail = error instanceof AppError ? (error.detail ?? error.message) : messageOf(error);
  const failure =
    error instanceof SignInRequired
      ? new TargetFailure(error.message, `${address}: ${error.message}`)
      : new TargetFailure(`${why}${reason}`, `${address}: ${why}: ${detail}`);
  if (error instanceof SignInRequired) failure.signIn = error.link;
  failure.credential = error instanceof AppError && error.status < 500 ? 'refused' : 'unavailable';
  return failure;
}

/** Settles like the promise, but rejects as soon as the signal is aborted: who asks for a token may have limits of their own. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return work;
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
