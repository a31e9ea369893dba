import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from '../shared/router.tsx';
import type { ToolsProps } from '../shared/shell.tsx';
import { useShortcuts } from '../shared/shortcuts.tsx';
import { Toasts, undoLatest } from '../shared/toasts.tsx';
import { useLoaded } from '../shared/use-loaded.ts';
import { API, type NamespacePage } from './model.ts';
import { chooseNamespace, useNamespace } from './namespace.ts';

/** Others are on the Namespaces page. */
const LISTED = 100;
const REFRESH = 30_000;

/** What every page has: the choice of a namespace, if there are several, and notices of deletions. */
export function Tools({ renew }: ToolsProps): ReactNode {
  useShortcuts([{ keys: 'u', what: 'undo the latest deletion', run: undoLatest }]);
  return (
    <>
      <NamespaceSelect renew={renew} />
      <Toasts />
    </>
  );
}

function NamespaceSelect({ renew }: ToolsProps): ReactNode {
  // Refused to the key of a namespace, which has no choice.
  const { data, reload } = useLoaded<NamespacePage>(`${API}/namespaces?limit=${LISTED}`, REFRESH);
  const current = useNamespace();
  const { path } = useLocation();
  const shown = useRef(current);
  // biome-ignore lint/correctness/useExhaustiveDependencies: pages may have deleted one.
  useEffect(reload, [reload, path, current]);
  useEffect(() => {
    if (shown.current === current) return;
    shown.current = current;
    renew();
  }, [current, renew]);
  const names = new Set([...(data?.namespaces ?? []).map(({ name }) => name), current]);
  if (data === undefined || names.size < 2) return null;
  return (
    <label className="namespace">
      <span>Namespace</span>
      <select value={current} onChange={(event) => chooseNamespace(event.target.value)}>
        {[...names].sort().map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}
