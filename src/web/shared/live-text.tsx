import { type ReactNode, useEffect, useRef, useState } from 'react';
import './unseen.css';

/**
 * Minimum interval between announcements in ms: a screen-reader user can follow a change every few seconds, not every
 * request.
 */
const PAUSE = 5_000;

/** Announces a text when it changes, at most every five seconds, and then its latest version. */
export function LiveText({ text }: { readonly text: string }): ReactNode {
  const [said, setSaid] = useState('');
  const last = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    if (text === said) return;
    const wait = Math.max(0, last.current + PAUSE - performance.now());
    const timer = setTimeout(() => {
      last.current = performance.now();
      setSaid(text);
    }, wait);
    return () => clearTimeout(timer);
  }, [text, said]);
  return (
    <p role="status" className="unseen">
      {said}
    </p>
  );
}
