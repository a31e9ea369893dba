import { z } from 'zod';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { bodyOf } from '../expressions/body-value.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { toCel } from '../expressions/cel/values.ts';
import { computedHeadersSchema, headerText, removedHeadersSchema } from '../expressions/computed-headers.ts';
import { ResponseView } from '../expressions/request-variables.ts';
import { type DocumentedScope, NOT_ENDED, REQUEST_ROOTS, requestScope } from '../expressions/scopes.ts';
import { defineVariable, resolverFor } from '../expressions/variable.ts';
import { responseWaits } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Expression, ExpressionScope, VariableResolver } from '../kernel/expression.ts';
import { definePolicy } from '../kernel/policy.ts';
import { FieldNames, type HeaderList, isSettableHeader } from '../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import type { PathMode } from '../kernel/request/request-target.ts';
import { Slot } from '../kernel/slot.ts';
import { bodyForExpressions, holdBody, replaceBody } from '../transport/upstream/held-body.ts';
import { setRequestPart } from './rewrite/request-part.ts';

/** Names with a colon for parts of a message that are not headers (RFC 9113 §8.3). */
const PSEUDO_HEADERS = [':method', ':path', ':authority', ':status'] as const;
type PseudoHeader = (typeof PSEUDO_HEADERS)[number];

/** Changes a part of the message. A value that is not valid for it is ignored. */
type SetPseudoHeader = (name: PseudoHeader, value: string) => void;

type ComputedHeaders = readonly (readonly [name: string, value: Expression])[];

/**
 * Evaluates each expression and applies its value. A header whose expression fails, or has a value that no header can
 * have, is removed, also by `add`: otherwise a client could send it itself.
 */
function applyComputed(
  computed: ComputedHeaders,
  action: 'set' | 'append',
  headers: HeaderList,
  lookup: VariableResolver,
  setPseudo: SetPseudoHeader,
): void {
  for (const [name, expression] of computed) {
    const value = headerText(tryEvaluate(expression, lookup));
    if (name.startsWith(':') || name.toLowerCase() === 'host') {
      const pseudo = name.startsWith(':') ? PSEUDO_HEADERS.find((one) => one === name) : ':authority';
      if (pseudo !== undefined && value !== undefined) setPseudo(pseudo, value);
    } else if (value === undefined) headers.delete(name);
    else headers[action](name, value);
  }
}

/** Fields for the length and recipient of a message: not headers that an expression decides about. */
const KEPT = new FieldNames(['content-length', 'expect', 'host']);

/**
 * Replaces all headers by the members of a map: texts, numbers and booleans, or lists of these. Does nothing if the
 * expression fails or has no map. Names and values that no header can have are omitted.
 */
function replaceHeaders(expression: Expression, headers: HeaderList, lookup: VariableResolver): void {
  const value = tryEvaluate(expression, lookup);
  if (value === null || typeof value !== 'object' || Array.isArray(value) || value instanceof Uint8Array)
    return;
  const { raw } = headers;
  const kept = raw.filter((_, index) => KEPT.has(raw[index - (index % 2)] ?? ''));
  raw.length = 0;
  raw.push(...kept);
  for (const [name, member] of Object.entries(value)) {
    if (!isSettableHeader(name)) continue;
    for (const line of [member].flat()) {
      const text = headerText(line);
      if (text !== undefined) headers.append(name, text);
    }
  }
}

/** Values of `metadata`, by name. */
const metadataValues = new Slot<Readonly<Record<string, unknown>>>();

export const metadataVariable = defineVariable(
  'metadata',
  { type: 'map', doc: 'Values of `metadata` of `transformations`, by name.' },
  (ctx) => toCel(metadataValues.get(ctx) ?? null),
);

/** Scope of the expressions that change a response. */
export const responseTransformationScope: DocumentedScope = {
  name: 'responseTransformation',
  roots: [...REQUEST_ROOTS, 'response'],
  unavailable: NOT_ENDED,
  doc: 'Before the response is sent to the client: `response.body` is absent if it is a stream of events or larger than `maxBufferSize`.',
  keys: ['add', 'set', 'replace', 'body', 'metadata'].map(
    (key) => `policies.transformations.response.${key}`,
  ),
};

const expression = z.string().min(1);

function sideSchema(message: string, pseudo: readonly PseudoHeader[]) {
  return z.strictObject({
    set: computedHeadersSchema(pseudo).describe(
      `Headers of the ${message} to set, as CEL expressions. A header whose expression fails is removed.`,
    ),
    add: computedHeadersSchema(pseudo).describe(
      'Headers to add, as CEL expressions; existing headers of the same name are kept, unless the expression fails.',
    ),
    remove: removedHeadersSchema.describe('Headers to remove, after `add` and `set`.'),
    replace: expression
      .optional()
      .describe(
        'CEL expression for a map of all headers, which replaces them before `add` and `set`. Nothing is replaced if it fails.',
      ),
    body: expression
      .optional()
      .describe(
        `CEL expression for the body: text, bytes, or a value that becomes JSON. If it fails, the ${message} has an empty body.`,
      ),
    metadata: z
      .record(nonEmpty, expression)
      .default({})
      .describe(
        'Values, as CEL expressions, that later expressions read as `metadata.<name>`. A value whose expression fails is omitted.',
      ),
  });
}

const schema = mapping('Computes headers, bodies and other parts of requests and responses.', {
  request: sideSchema('request', [':method', ':path', ':authority'])
    .optional()
    .describe('Changes the request before it is sent to the backend.'),
  response: sideSchema('response', [':status'])
    .optional()
    .describe('Changes the response before it is sent to the client.'),
});

/** Changes requests and responses by expressions. */
export const transformations = definePolicy({
  key: 'transformations',
  places: ['gateway', 'route', 'backend'],
  conditional: true,
  requestExpressions: ['add', 'set', 'replace', 'body', 'metadata'].map((key) => `request.${key}`),
  schema,
  trace: { kind: 'transformation', stage: 'transformation', responseStage: 'transformation' },
  compile({ request, response }, context) {
    const inbound = request && compileSide(request, context.at('request'), requestScope);
    const outbound = response && compileSide(response, context.at('response'), responseTransformationScope);
    const { maxBufferSize, requestValidation } = context.settings;
    const readsBody = outbound?.expressions.some(readsResponseBody) === true;
    const { pathNormalization } = requestValidation;
    return {
      request(ctx) {
        if (readsBody)
          responseWaits.ensure(ctx, () => []).push((reply) => holdBody(ctx, reply, maxBufferSize));
        if (inbound !== undefined) changeRequest(ctx, inbound, pathNormalization);
        return undefined;
      },
      ...(outbound && { response: (ctx, reply) => changeResponse(ctx, reply, outbound) }),
    };
  },
});

const readsResponseBody = ({ reads }: Expression): boolean =>
  reads('response.body') || reads('response.bodyPrefix');

/** The compiled changes of one message. */
interface Changes {
  readonly set: ComputedHeaders;
  readonly add: ComputedHeaders;
  readonly remove: readonly string[];
  readonly replace: Expression | undefined;
  readonly body: Expression | undefined;
  readonly metadata: readonly (readonly [name: string, value: Expression])[];
  readonly expressions: readonly Expression[];
}

function compileSide(
  side: z.output<ReturnType<typeof sideSchema>>,
  context: CompileContext,
  scope: ExpressionScope,
): Changes {
  const compileAll = (key: 'set' | 'add' | 'metadata') =>
    Object.entries(side[key]).map(
      ([name, source]) => [name, context.at(key, name).cel(source, scope)] as const,
    );
  const compileOne = (key: 'replace' | 'body') => {
    const source = side[key];
    return source === undefined ? undefined : context.at(key).cel(source, scope);
  };
  const changes = {
    set: compileAll('set'),
    add: compileAll('add'),
    remove: side.remove,
    replace: compileOne('replace'),
    body: compileOne('body'),
    metadata: compileAll('metadata'),
  };
  const { set, add, metadata, replace, body } = changes;
  const expressions = [...set, ...add, ...metadata].map(([, compiled]) => compiled);
  for (const one of [replace, body]) if (one !== undefined) expressions.push(one);
  return { ...changes, expressions };
}

function changeRequest(ctx: RequestContext, changes: Changes, paths: PathMode): void {
  const lookup = resolverFor(ctx);
  setMetadata(ctx, changes, lookup);
  changeHeaders(ctx.headers, changes, lookup, (name, value) => setRequestPart(ctx, name, value, paths));
  if (changes.body !== undefined) {
    const sent = ctx.body.captured;
    const bytes = bodyOf(changes.body, lookup) ?? Buffer.alloc(0);
    // A body that stays as it was also keeps its content coding.
    if (sent === undefined || !bytes.equals(sent)) {
      ctx.body.replace(bytes);
      for (const name of ['content-length', 'content-encoding']) ctx.headers.delete(name);
    }
  }
  report(ctx, 'request', changes);
}

function changeResponse(ctx: RequestContext, reply: Reply, changes: Changes): void {
  const body = (): Uint8Array | string | undefined => bodyForExpressions(ctx, reply);
  let view = new ResponseView(reply.status, reply.headers.raw, body);
  const lookup = resolverFor(ctx, {
    get response() {
      return view;
    },
  });
  setMetadata(ctx, changes, lookup);
  changeHeaders(reply.headers, changes, lookup, (_status, value) => {
    if (!/^[2-5]\d\d$/.test(value)) return;
    reply.status = Number(value);
    view = new ResponseView(reply.status, reply.headers.raw, body);
  });
  const isUpgrade = typeof reply.body === 'object' && 'takeOver' in reply.body;
  if (changes.body !== undefined && !isUpgrade)
    replaceBody(reply, bodyOf(changes.body, lookup) ?? Buffer.alloc(0));
  report(ctx, 'response', changes);
}

function setMetadata(ctx: RequestContext, { metadata }: Changes, lookup: VariableResolver): void {
  for (const [name, value] of metadata) {
    const result = tryEvaluate(value, lookup);
    if (result === undefined) continue;
    metadataValues.set(ctx, { ...metadataValues.get(ctx), [name]: result });
    ctx.invalidateVariable('metadata');
  }
}

function changeHeaders(
  headers: HeaderList,
  { replace, add, set, remove }: Changes,
  lookup: VariableResolver,
  setPart: SetPseudoHeader,
): void {
  if (replace !== undefined) replaceHeaders(replace, headers, lookup);
  applyComputed(add, 'append', headers, lookup, setPart);
  applyComputed(set, 'set', headers, lookup, setPart);
  for (const name of remove) headers.delete(name);
}

function report(ctx: RequestContext, message: string, { set, add, remove, body, metadata }: Changes): void {
  ctx.observer?.policy({
    kind: 'transformations',
    action: 'apply',
    reason: `${message} changed`,
    snapshot: {
      set: set.map(([name]) => name),
      add: add.map(([name]) => name),
      remove,
      body: body !== undefined,
      metadata: metadata.map(([name]) => name),
    },
  });
}
