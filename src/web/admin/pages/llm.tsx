import { type ReactNode, useState } from 'react';
import { CopyButton } from '../../shared/copy.tsx';
import { Problem } from '../../shared/problem.tsx';
import { visible } from '../../shared/visible.ts';
import { Composer, Conversation } from '../llm/conversation.tsx';
import { Outcome } from '../llm/outcome.tsx';
import { type Side, SideForm, useSide } from '../llm/side.tsx';
import { useOverview } from '../model/overview.ts';
import { NoEndpoint } from '../parts/no-endpoint.tsx';
import { CallTrace } from '../playground/call-trace.tsx';
import { type Endpoint, endpointsOf } from '../playground/endpoints.ts';
import { TokenField, useToken } from '../playground/token.tsx';
import '../playground/playground.css';

/** Chat with the models behind the gateway, one or two at a time, and see the effects of the gateway on each call. */
export function Llm(): ReactNode {
  const { data, error, reload } = useOverview();
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Contacting the gateway …</p>
    ) : (
      <Problem title="The gateway did not respond" error={error} retry={reload} />
    );
  const [first, ...others] = endpointsOf(data, 'llm');
  if (first === undefined) return <NoEndpoint kind="llm" />;
  return <Playground endpoints={[first, ...others]} />;
}

const NAMES = ['First model', 'Second model'];

function Playground({ endpoints }: { readonly endpoints: readonly [Endpoint, ...Endpoint[]] }): ReactNode {
  const [isComparing, setComparing] = useState(false);
  const first = useSide(endpoints, 0);
  const second = useSide(endpoints, 1);
  const token = useToken();
  const sides = isComparing ? [first, second] : [first];
  // Two conversations need the width themselves.
  const hasAnswer = !isComparing && first.chat.state.body !== undefined;
  const each = (act: (side: Side) => void): void => sides.forEach(act);
  const compare = (isOn: boolean): void => {
    setComparing(isOn);
    // Both models must get the same conversation.
    if (isOn) first.chat.clear();
    second.chat.clear();
  };
  return (
    <>
      <div className="row">
        <TokenField />
        <label className="choice">
          <input type="checkbox" checked={isComparing} onChange={({ target }) => compare(target.checked)} />{' '}
          compare two models
        </label>
      </div>
      <div className={hasAnswer ? 'call-and-answer' : undefined}>
        <div>
          <Sides sides={sides}>
            {(side, name) => (
              <section className="panel" aria-label={name ?? 'Model'}>
                {name === undefined ? null : <h2>{name}</h2>}
                <SideForm side={side} endpoints={endpoints} />
              </section>
            )}
          </Sides>
          <Sides sides={sides}>{(side, name) => <Said side={side} name={name} />}</Sides>
          <Composer
            isRunning={sides.some(({ chat }) => chat.state.isRunning)}
            send={(text) =>
              each(({ chat, endpoint, settings }) => chat.send(endpoint, token, settings, text))
            }
            stop={() => each(({ chat }) => chat.stop())}
            clear={() => each(({ chat }) => chat.clear())}
          />
        </div>
        <div className={hasAnswer ? 'answer' : undefined}>
          <Sides sides={sides}>
            {(side, name) => <Results side={side} name={name} hasToken={token !== ''} />}
          </Sides>
        </div>
      </div>
    </>
  );
}

/** The same view for each model, side by side if there is room; `name` distinguishes them. */
function Sides({
  sides,
  children,
}: {
  readonly sides: readonly Side[];
  readonly children: (side: Side, name: string | undefined) => ReactNode;
}): ReactNode {
  return (
    <div className={sides.length > 1 ? 'sides' : ''}>
      {sides.map((side, index) => (
        <div key={NAMES[index]}>{children(side, sides.length > 1 ? NAMES[index] : undefined)}</div>
      ))}
    </div>
  );
}

const labelled = (what: string, name: string | undefined): string =>
  name === undefined ? what : `${what}, ${name.toLowerCase()}`;

function Said({ side, name }: { readonly side: Side; readonly name: string | undefined }): ReactNode {
  const { turns, isRunning, error } = side.chat.state;
  return (
    <>
      <Conversation label={labelled('Conversation', name)} turns={turns} isRunning={isRunning} />
      {error === '' ? null : (
        <p role="alert" className="panel problem">
          ✗ {visible(error)}
        </p>
      )}
    </>
  );
}

/** The result of the last message to a model. */
function Results({
  side: { chat, endpoint },
  name,
  hasToken,
}: {
  readonly side: Side;
  readonly name: string | undefined;
  readonly hasToken: boolean;
}): ReactNode {
  const { state } = chat;
  const { body } = state;
  if (body === undefined) return null;
  return (
    <>
      <Outcome label={labelled('Outcome', name)} state={state} />
      <fieldset className="row bar" aria-label={labelled('Request', name)}>
        <CopyButton text={() => asCurl(endpoint, body, hasToken)}>Copy as curl</CopyButton>
        <CopyButton text={() => asSdk(endpoint, body, hasToken)}>Copy for the OpenAI SDK</CopyButton>
      </fieldset>
      {/* Two traces would leave little room for the comparison. */}
      <CallTrace trace={state.trace} problem={state.traceProblem} isOpen={name === undefined} />
    </>
  );
}

/** Quotes a text as one word for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request as a command. The token is a variable, so that it does not enter the shell's history. */
function asCurl(
  { origin, path, host }: Endpoint,
  body: Readonly<Record<string, unknown>>,
  hasToken: boolean,
): string {
  return [
    `curl -sS ${origin}${path} \\`,
    `  -H 'content-type: application/json' \\`,
    ...(host === undefined || new URL(origin).hostname === host
      ? []
      : [`  -H ${quoted(`host: ${host}`)} \\`]),
    ...(hasToken ? [`  -H "authorization: Bearer $GATEWAY_TOKEN" \\`] : []),
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join('\n');
}

/** The request in the OpenAI SDK for JavaScript. */
function asSdk(
  { origin, path }: Endpoint,
  body: Readonly<Record<string, unknown>>,
  hasToken: boolean,
): string {
  const base = `${origin}${path.replace(/\/chat\/completions$/, '')}`;
  const isStream = body['stream'] === true;
  return [
    `import OpenAI from 'openai';`,
    '',
    `const client = new OpenAI({`,
    `  baseURL: ${JSON.stringify(base)},`,
    `  apiKey: ${hasToken ? 'process.env.GATEWAY_TOKEN' : `'none'`},`,
    `});`,
    `const answer = await client.chat.completions.create(${JSON.stringify(body, null, 2)});`,
    isStream
      ? `for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');`
      : `console.log(answer.choices[0].message.content);`,
  ].join('\n');
}
