import { type ReactNode, useEffect, useState } from 'react';

/** Copies a text, and briefly reports whether that worked. */
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
      setSaid(isDone ? 'Copied' : 'The browser denied access to the clipboard'),
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

/** The clipboard API exists in secure contexts only; the older method works elsewhere too. */
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
