import { type ComponentType, type ReactNode, useEffect, useState } from 'react';
import type { CallerView } from '../../../core/caller-view.ts';
import { ask } from '../../shared/api.ts';
import { useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { WithCode } from '../../shared/with-code.tsx';

type Role = NonNullable<CallerView['role']>;

/** Each may also do what those before it may. */
const ROLES: readonly Role[] = ['viewer', 'operator', 'editor'];

let asked: { readonly path: string; readonly answer: Promise<CallerView> } | undefined;

/** One request for all parts of a page. The next page asks again, because roles change. */
function callerAt(path: string): Promise<CallerView> {
  if (asked?.path === path) return asked.answer;
  const answer = ask<CallerView>('/api/me');
  asked = { path, answer };
  answer.catch(() => {
    if (asked?.answer === answer) asked = undefined;
  });
  return answer;
}

/** Who uses the pages; undefined until it is known. The server decides what they may do: pages only say so beforehand. */
export function useCaller(): CallerView | undefined {
  const { path } = useLocation();
  const [caller, setCaller] = useState<CallerView>();
  useEffect(() => {
    let isGone = false;
    callerAt(path).then(
      (answer) => {
        if (!isGone) setCaller(answer);
      },
      // The rest of the page says that the gateway does not answer.
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [path]);
  return caller;
}

const lacks = (caller: CallerView | undefined, role: Role): caller is CallerView =>
  caller !== undefined && (caller.role === null || ROLES.indexOf(caller.role) < ROLES.indexOf(role));

/** `viewer`; `none`. */
export const roleText = ({ role }: CallerView): string => role ?? 'none';

/** The content of a page, or why the caller does not see it. */
export function forRole(role: Role, Content: ComponentType): ComponentType {
  const ForRole = (): ReactNode => {
    const caller = useCaller();
    return lacks(caller, role) ? <Lacking caller={caller} needed={role} what="This page" /> : <Content />;
  };
  return ForRole;
}

/** Controls that the caller cannot use without a role: then they are disabled, with the reason. */
export function NeedsRole({
  needed,
  children,
}: {
  readonly needed: Role;
  readonly children: ReactNode;
}): ReactNode {
  const caller = useCaller();
  if (!lacks(caller, needed)) return children;
  return (
    <fieldset disabled className="plain">
      <Lacking caller={caller} needed={needed} what="What follows" />
      {children}
    </fieldset>
  );
}

function Lacking({
  caller,
  needed,
  what,
}: {
  readonly caller: CallerView;
  readonly needed: Role;
  readonly what: string;
}): ReactNode {
  const { actor, reason, title = actor.name } = caller;
  return (
    <p className="panel">
      {what} needs the role <strong>{needed}</strong>.{' '}
      {title === undefined ? 'You have' : `${visible(title)} has`}{' '}
      {caller.role === null ? 'no role' : `the role ${caller.role}`}
      {reason === undefined ? null : (
        <>
          : <WithCode text={reason} />
        </>
      )}
      .
    </p>
  );
}
