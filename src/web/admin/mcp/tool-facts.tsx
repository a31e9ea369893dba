import { type ReactNode, useState } from 'react';
import type { ToolRuleView } from '../../../core/overview.ts';
import { CopyButton } from '../../shared/copy.tsx';
import { visible } from '../../shared/visible.ts';
import type { Endpoint } from '../playground/endpoints.ts';
import { Callers } from './callers.tsx';
import type { Item } from './item.ts';

/** Characters of a definition that are displayed; copying includes all of them. */
const SHOWN = 100_000;

/** What a model gets to know of a tool, and who may call it. */
export function ToolFacts({
  item,
  endpoint,
  target,
  own,
}: {
  readonly item: Item;
  readonly endpoint: Endpoint;
  readonly target: string;
  /** Its name at the target, which rules compare. */
  readonly own: string;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <details className="tool-facts" open>
        <summary>Who may call it</summary>
        <WhoMayCall own={own} rules={endpoint.toolRules} policies={endpoint.policies} />
        <Callers key={`${target} ${own}`} endpoint={endpoint} target={target} own={own} />
      </details>
      {/* Its text exists only when it is shown: a schema may be long. */}
      <details
        className="tool-facts"
        open={isOpen}
        onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
      >
        <summary>Schema and everything else that a model sees</summary>
        {isOpen ? (
          <>
            <pre>{visible(item.definition.slice(0, SHOWN))}</pre>
            <CopyButton text={item.definition}>Copy definition</CopyButton>
          </>
        ) : null}
      </details>
    </>
  );
}

const EFFECTS: Readonly<Record<ToolRuleView['effect'], string>> = {
  allow: 'may, if',
  deny: 'may not, if',
  require: 'may only if',
};

/** The rules that decide, those that name the tool first. */
function WhoMayCall({
  own,
  rules,
  policies,
}: {
  readonly own: string;
  readonly rules: readonly ToolRuleView[];
  readonly policies: readonly string[];
}): ReactNode {
  const asking = policies.filter((policy) => ASKING.has(policy));
  const naming = (expression: string): boolean =>
    expression.includes(JSON.stringify(own)) || expression.includes(`'${own}'`);
  const sorted = rules.toSorted((a, b) => Number(naming(b.expression)) - Number(naming(a.expression)));
  return (
    <>
      <p>
        {asking.length === 0
          ? 'The route asks nobody for a key or a token.'
          : `Callers that ${asking.join(' and ')} ${asking.length === 1 ? 'accepts' : 'accept'}.`}{' '}
        {rules.length === 0
          ? 'No rule of mcpAuthorization decides on tools: each of them may call it.'
          : 'Rules of mcpAuthorization decide.'}
      </p>
      {rules.length === 0 ? null : (
        <ul className="rules">
          {sorted.map(({ effect, expression }) => (
            <li key={`${effect} ${expression}`}>
              {EFFECTS[effect]} <code>{visible(expression)}</code>{' '}
              {naming(expression) ? <span className="quiet">names this tool</span> : null}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

/** Policies that find out who calls. */
export const ASKING: ReadonlySet<string> = new Set([
  'apiKey',
  'basicAuth',
  'extAuthz',
  'jwtAuth',
  'mcpAuthentication',
  'oidc',
]);
