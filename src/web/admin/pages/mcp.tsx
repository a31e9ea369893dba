import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { Select } from '../../shared/form.tsx';
import { Problem } from '../../shared/problem.tsx';
import { useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { CallView, useCalls } from '../mcp/call.tsx';
import { CallHistory } from '../mcp/call-history.tsx';
import { Catalog } from '../mcp/catalog.tsx';
import { connect, type McpSession } from '../mcp/client.ts';
import { type Item, itemIn } from '../mcp/item.ts';
import { type ItemKind, ItemPicker, type Items } from '../mcp/item-picker.tsx';
import { ASKING } from '../mcp/tool-facts.tsx';
import { useOverview } from '../model/overview.ts';
import { NoEndpoint } from '../parts/no-endpoint.tsx';
import { type Endpoint, endpointsOf } from '../playground/endpoints.ts';
import { TokenField, useToken } from '../playground/token.tsx';
import '../playground/playground.css';

/** Call the MCP servers behind the gateway as a client would, and see how each call is processed. */
export function Mcp(): ReactNode {
  const { data, error, reload } = useOverview();
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Contacting the gateway …</p>
    ) : (
      <Problem title="The gateway did not respond" error={error} retry={reload} />
    );
  const endpoints = endpointsOf(data, 'mcp');
  if (endpoints.length === 0) return <NoEndpoint kind="mcp" />;
  return <Playground endpoints={endpoints} isRecording={data.isRecording} />;
}

type State =
  | { readonly kind: 'closed' | 'opening' }
  | { readonly kind: 'failed'; readonly error: Error }
  | { readonly kind: 'open'; readonly session: McpSession; readonly items: Items };

function Playground({
  endpoints,
  isRecording,
}: {
  readonly endpoints: readonly Endpoint[];
  readonly isRecording: boolean;
}): ReactNode {
  const target = useLocation().query.get('target') ?? '';
  const [key, setKey] = useState(
    (endpoints.find((each) => namesOf(each).includes(target)) ?? endpoints[0])?.key ?? '',
  );
  const endpoint = endpoints.find((each) => each.key === key) ?? endpoints[0];
  const { state, open, close } = useSession();
  const token = useToken();
  // Without a key, a request to a route that asks for one would only be refused.
  const asking = endpoint?.policies.filter((policy) => ASKING.has(policy)) ?? [];
  const isReady = asking.length === 0 || token !== '';
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the page opens, and for another endpoint.
  useEffect(() => {
    if (endpoint !== undefined && isReady) open(endpoint, token);
  }, [endpoint?.key]);
  if (endpoint === undefined) return null;
  return (
    <>
      <form
        className="panel"
        onSubmit={(event) => {
          event.preventDefault();
          open(endpoint, token);
        }}
      >
        <div className="row">
          <Select
            label="Endpoint"
            className="grow"
            value={endpoint.key}
            values={endpoints.map((each) => [each.key, each.name])}
            choose={(next) => {
              setKey(next);
              close();
            }}
          />
          <TokenField />
          <button type="submit" className="primary" disabled={state.kind === 'opening'}>
            {state.kind === 'open' ? 'Reconnect' : 'Connect'}
          </button>
        </div>
        <Targets endpoint={endpoint} />
      </form>
      {state.kind === 'closed' && !isReady ? (
        <Known endpoint={endpoint} asking={asking} isRecording={isRecording} />
      ) : null}
      <p role="status">
        {state.kind === 'opening' ? <span className="quiet">Connecting …</span> : null}
        {state.kind === 'open' ? (
          <span className="good">✓ Connected to {visible(state.session.server)}</span>
        ) : null}
      </p>
      {state.kind === 'failed' ? <Problem title="No session" error={state.error} /> : null}
      {state.kind === 'open' ? (
        <Session session={state.session} items={state.items} endpoint={endpoint} isRecording={isRecording} />
      ) : null}
    </>
  );
}

/** The tools that the gateway itself has seen in lists of the targets, where a key is missing to ask for them as a client. */
function Known({
  endpoint,
  asking,
  isRecording,
}: {
  readonly endpoint: Endpoint;
  readonly asking: readonly string[];
  readonly isRecording: boolean;
}): ReactNode {
  const targets = endpoint.backends.flatMap(({ targets: each = [] }) => each);
  const names = targets.flatMap(({ name, toolNames = [] }) =>
    // As clients get them: with the target in front if there are several.
    toolNames.map((tool) => (targets.length > 1 ? `${name}_${tool}` : tool)),
  );
  const shape = names.join('\n');
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` has the names.
  const tools = useMemo(() => names.flatMap((name) => itemIn({ name })), [shape]);
  return (
    <>
      <p className="panel">
        This route asks for a key or a token ({asking.join(', ')}): enter one above and press{' '}
        <strong>Connect</strong> to call tools and to see their schemas.{' '}
        {tools.length === 0
          ? 'The gateway does not know the tools yet: no client has listed them since the targets were connected.'
          : 'Below are the tools that the gateway has seen in lists of its targets.'}
      </p>
      <Catalog endpoint={endpoint} tools={tools} isRecording={isRecording} open={undefined} />
    </>
  );
}

const namesOf = ({ backends }: Endpoint): readonly string[] =>
  backends.flatMap(({ targets = [] }) => targets.map(({ name }) => name));

function Targets({ endpoint }: { readonly endpoint: Endpoint }): ReactNode {
  const targets = endpoint.backends.flatMap(({ targets: each = [] }) => each);
  return (
    <p className="quiet">
      Targets:{' '}
      {targets.map(({ name, state, problem }) => visible(`${name} (${problem ?? state})`)).join(', ')}
      {endpoint.policies.length === 0 ? '' : `. Policies: ${endpoint.policies.join(', ')}`}
    </p>
  );
}

function useSession(): {
  readonly state: State;
  readonly open: (endpoint: Endpoint, token: string) => void;
  readonly close: () => void;
} {
  const [state, setState] = useState<State>({ kind: 'closed' });
  const current = useRef<{ readonly gone: AbortController; session?: McpSession } | undefined>(undefined);
  const end = (): void => {
    current.current?.session?.close();
    current.current?.gone.abort();
    current.current = undefined;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once, when the page is left.
  useEffect(() => end, []);
  const open = (endpoint: Endpoint, token: string): void => {
    end();
    const own: { readonly gone: AbortController; session?: McpSession } = { gone: new AbortController() };
    current.current = own;
    setState({ kind: 'opening' });
    const run = async (): Promise<State> => {
      const session = await connect(endpoint, token, own.gone.signal);
      own.session = session;
      const list = (what: ItemKind): Promise<readonly Item[]> =>
        session.capabilities[what] === undefined ? Promise.resolve([]) : session.list(what);
      const [tools, prompts, resources] = await Promise.all([
        list('tools'),
        list('prompts'),
        list('resources'),
      ]);
      return { kind: 'open', session, items: { tools, prompts, resources } };
    };
    void run()
      .catch((error: Error): State => ({ kind: 'failed', error }))
      .then((next) => {
        if (current.current === own) setState(next);
      });
  };
  const close = (): void => {
    end();
    setState({ kind: 'closed' });
  };
  return { state, open, close };
}

function Session({
  session,
  items,
  endpoint,
  isRecording,
}: {
  readonly session: McpSession;
  readonly items: Items;
  readonly endpoint: Endpoint;
  readonly isRecording: boolean;
}): ReactNode {
  const [opened, setOpened] = useState<{ readonly item: Item; readonly round: number }>();
  const { calls, call, isRunning, show, send, stop } = useCalls(session);
  return (
    <>
      {session.instructions === undefined ? null : (
        <details className="panel">
          <summary>Instructions of the server</summary>
          <pre>{visible(session.instructions)}</pre>
        </details>
      )}
      <Catalog
        endpoint={endpoint}
        tools={items.tools}
        isRecording={isRecording}
        open={(item) => setOpened((before) => ({ item, round: (before?.round ?? 0) + 1 }))}
      />
      <div className="call-and-answer">
        <div>
          <ItemPicker
            items={items}
            targets={namesOf(endpoint)}
            endpoint={endpoint}
            opened={opened}
            isRunning={isRunning}
            send={send}
            stop={stop}
          />
          <CallHistory calls={calls} shown={call?.number} isRunning={isRunning} show={show} send={send} />
        </div>
        {call === undefined ? (
          <section className="panel answer empty" aria-label="Answer">
            <p className="quiet">The answer and its trace appear here.</p>
          </section>
        ) : (
          <CallView call={call} />
        )}
      </div>
    </>
  );
}
