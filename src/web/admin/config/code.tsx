import { type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import type { Editor, Mark } from './editor.ts';

const NOT_LOADED = 'The editor could not be loaded. Reload the page.';

/** The YAML editor. `text` is its initial text; a new value replaces the edited text. */
export function CodeEditor({
  label,
  text,
  marks,
  changed,
  editor,
  opened,
}: {
  readonly label: string;
  readonly text: string;
  readonly marks: readonly Mark[];
  readonly changed: (text: string) => void;
  readonly editor: RefObject<Editor | undefined>;
  /** Called when the editor has been created. */
  readonly opened: () => void;
}): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState('');
  const [isOpen, setOpen] = useState(false);
  const onChange = useRef(changed);
  onChange.current = changed;
  const onOpen = useRef(opened);
  onOpen.current = opened;
  useEffect(() => {
    let isGone = false;
    import('./editor.ts').then(
      ({ createEditor }) => {
        if (isGone || host.current === null) return;
        editor.current = createEditor({
          host: host.current,
          text,
          label,
          changed: (next) => onChange.current(next),
        });
        setOpen(true);
        onOpen.current();
      },
      () => setProblem(NOT_LOADED),
    );
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [text, label, editor]);
  useEffect(() => {
    if (isOpen) editor.current?.setMarks(marks);
  }, [marks, isOpen, editor]);
  return (
    <>
      {problem === '' ? null : <p className="bad">✗ {problem}</p>}
      <div ref={host} className="code" />
    </>
  );
}

/** The differences between two texts. */
export function Diff({
  label,
  before,
  after,
}: {
  readonly label: string;
  readonly before: string;
  readonly after: string;
}): ReactNode {
  const host = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let close: (() => void) | undefined;
    let isGone = false;
    import('./editor.ts').then(
      ({ createDiff }) => {
        if (!isGone && host.current !== null) close = createDiff(host.current, label, before, after);
      },
      () => setProblem(NOT_LOADED),
    );
    return () => {
      isGone = true;
      close?.();
    };
  }, [label, before, after]);
  return (
    <>
      {problem === '' ? null : <p className="bad">✗ {problem}</p>}
      <div ref={host} className="code" />
    </>
  );
}
