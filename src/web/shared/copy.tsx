import { type ReactNode, useEffect, useState } from 'react';

/** Copies a text; says for a moment whether that worked. */
export function CopyButton({
  text,
  children,
}: {
  readonly text: string | (() => string);
  readonly children: ReactNode;
}): ReactNode {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (said === '') return;
    const timer = setTimeout(() => setSaid(''), 2_000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = (): void => {
    void copied(typeof text === 'string' ? text : text()).then((isDone) =>
      setSaid(isDone ? 'Copied' : 'The browser did not let me copy'),
    );
  };
  return (
    <>
      <button type="button" onClick={copy}>
        {children}
      </button>
      <span role="status" className="said">
        {said}
      </span>
    </>
  );
}

/** The clipboard interface exists on secure addresses only; the older way works on the others too. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.setAttribute('aria-hidden', 'true');
    area.className = 'offscreen';
    document.body.append(area);
    area.select();
    const isDone = document.execCommand('copy');
    area.remove();
    return isDone;
  }
}
