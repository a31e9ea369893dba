import type { MouseEvent, ReactNode } from 'react';
import { href, navigate } from './router.ts';

interface LinkProps {
  readonly to: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly current?: boolean;
  readonly className?: string;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A link to another page of the application: a real one, so that it can be opened in a new tab. */
export function Link({ to, query = {}, current = false, className, title, children }: LinkProps): ReactNode {
  const onClick = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to, query);
  };
  return (
    <a
      href={href(to, query)}
      onClick={onClick}
      aria-current={current ? 'page' : undefined}
      {...(className === undefined ? {} : { className })}
      {...(title === undefined ? {} : { title })}
    >
      {children}
    </a>
  );
}
