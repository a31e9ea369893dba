import { type ReactNode, useId, useState } from 'react';
import { Select } from '../../shared/form.tsx';
import { Command, Problem } from '../../shared/problem.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { llmRecipes } from '../connect/llm-recipes.ts';
import { mcpRecipes } from '../connect/mcp-recipes.ts';
import { entryName, KEY, type Recipe, type Target } from '../connect/recipe.ts';
import { useOverview } from '../model/overview.ts';
import { NoEndpoint } from '../parts/no-endpoint.tsx';
import { type Endpoint, endpointsOf } from '../playground/endpoints.ts';
import '../playground/playground.css';
import '../connect/connect.css';

type Kind = 'mcp' | 'llm';

/** Settings for the clients of this gateway, to be copied. */
export function Connect(): ReactNode {
  const { data, error, reload } = useOverview();
  const [chosen, setKind] = useState<Kind>();
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Contacting the gateway …</p>
    ) : (
      <Problem title="The gateway did not respond" error={error} retry={reload} />
    );
  const endpoints = { mcp: endpointsOf(data, 'mcp'), llm: endpointsOf(data, 'llm') };
  const kind = chosen ?? (endpoints.mcp.length === 0 && endpoints.llm.length > 0 ? 'llm' : 'mcp');
  const tabs: readonly Tab<Kind>[] = [
    { name: 'mcp', label: 'Tools (MCP)' },
    { name: 'llm', label: 'Models' },
  ];
  return (
    <Tabs label="What to connect" tabs={tabs} chosen={kind} choose={setKind}>
      {endpoints[kind].length === 0 ? (
        <NoEndpoint kind={kind} />
      ) : (
        <Recipes key={kind} kind={kind} endpoints={endpoints[kind]} />
      )}
    </Tabs>
  );
}

function Recipes({
  kind,
  endpoints,
}: {
  readonly kind: Kind;
  readonly endpoints: readonly Endpoint[];
}): ReactNode {
  const [key, setKey] = useState(endpoints[0]?.key);
  const endpoint = endpoints.find((each) => each.key === key) ?? endpoints[0];
  const [typed, setOrigin] = useState<string>();
  const [model, setModel] = useState<string>();
  const list = useId();
  if (endpoint === undefined) return null;
  const origin = typed ?? endpoint.origin;
  const access = accessOf(endpoint);
  const models = modelsOf(endpoint);
  const target = targetOf(kind, endpoint, origin, access, model ?? models[0] ?? ANY_MODEL);
  const recipes: readonly Recipe[] = kind === 'mcp' ? mcpRecipes(target) : llmRecipes(target);
  return (
    <>
      <div className="row">
        <Select
          label="Endpoint"
          className="grow"
          value={endpoint.key}
          values={endpoints.map((each) => [each.key, each.name])}
          choose={(next) => {
            setKey(next);
            setOrigin(undefined);
            setModel(undefined);
          }}
        />
        <label className="grow">
          Address of the gateway for its clients
          <input
            type="url"
            spellCheck={false}
            value={origin}
            onChange={(event) => setOrigin(event.target.value.trim().replace(/\/+$/, ''))}
          />
        </label>
        {kind === 'mcp' ? null : (
          <label className="grow">
            Model
            <input
              type="text"
              list={list}
              spellCheck={false}
              value={target.model}
              onChange={(event) => setModel(event.target.value)}
            />
            <datalist id={list}>
              {models.map((name) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
        )}
      </div>
      <p className="quiet">{ACCESS[access]}</p>
      <div className="recipes">
        {recipes.map(({ client, where, text }) => (
          <section key={client} className="panel" aria-label={client}>
            <h2>{client}</h2>
            <p className="quiet">{where}</p>
            <Command text={text} />
          </section>
        ))}
      </div>
    </>
  );
}

/** How clients prove who they are: `key` in a header, `oauth` by a sign-in of their own. */
type Access = 'open' | 'key' | 'oauth';

const ACCESS: Readonly<Record<Access, ReactNode>> = {
  open: 'This route needs no key.',
  key: (
    <>
      This route needs a key: the settings read it from the environment variable <code>{KEY}</code> where the
      client can.
    </>
  ),
  oauth: 'This route needs a sign-in: clients open it in a browser by themselves.',
};

/** Policies that reject requests without credentials. */
const WITH_KEY = new Set(['apiKey', 'jwtAuth', 'jwt', 'basicAuth', 'virtualKeys', 'extAuthz']);
const CHAT = '/v1/chat/completions';

function accessOf({ policies }: Endpoint): Access {
  if (policies.includes('mcpAuthentication')) return 'oauth';
  return policies.some((policy) => WITH_KEY.has(policy)) ? 'key' : 'open';
}

/** For an endpoint that takes any name. */
const ANY_MODEL = 'gpt-4o-mini';

const modelsOf = ({ backends }: Endpoint): readonly string[] =>
  backends
    .flatMap(({ models = [] }) => models)
    .map(({ name }) => name)
    .filter((name) => !name.includes('*'));

function targetOf(
  kind: Kind,
  { path, routeName }: Endpoint,
  origin: string,
  access: Access,
  model: string,
): Target {
  return {
    name: entryName(routeName),
    url: kind === 'mcp' ? `${origin}${path}` : `${origin}${path.replace(CHAT, '')}`,
    keyVariable: access === 'key' || (access === 'oauth' && kind === 'llm') ? KEY : undefined,
    model,
  };
}
