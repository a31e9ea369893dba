import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { Problem } from '../../shared/problem.tsx';
import { useLocation } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { CodeEditor, Diff } from '../config/code.tsx';
import type { Change, Editor } from '../config/editor.ts';
import { Outline } from '../config/outline-list.tsx';
import { type Fix, ProblemList, useVerdict } from '../config/problems.tsx';
import { type ConfigFile, SaveBar } from '../config/save-bar.tsx';
import '../config/config.css';

/** What is not saved yet, for when the page is opened again. In another state of the file, its placeholders are other secrets. */
let draft: { readonly hash: string | null; readonly text: string } | undefined;

function keepDraft(kept: typeof draft): void {
  draft = kept;
  if (kept === undefined) removeEventListener('beforeunload', warn);
  else addEventListener('beforeunload', warn);
}

const warn = (event: BeforeUnloadEvent): void => event.preventDefault();

const textOf = (file: ConfigFile): string => file.text ?? file.loaded ?? '';

/**
 * The configuration file: validates while the user types, shows differences from the active configuration, and saves.
 */
export function Config(): ReactNode {
  const { data, error, reload } = useLoaded<ConfigFile>('/api/config/file');
  if (data === undefined)
    return error === undefined ? (
      <p className="quiet">Reading the configuration …</p>
    ) : (
      <Problem title="The configuration could not be read" error={error} retry={reload} />
    );
  return <ConfigPage file={data} reload={reload} />;
}

function ConfigPage({ file, reload }: { readonly file: ConfigFile; readonly reload: () => void }): ReactNode {
  const start = textOf(file);
  const initial = useMemo(() => (draft?.hash === file.hash ? draft.text : textOf(file)), [file]);
  const [text, setText] = useState(initial);
  const editor = useRef<Editor | undefined>(undefined);
  // The user reloaded the file, so the edits are discarded.
  // biome-ignore lint/correctness/useExhaustiveDependencies: also if its text is the same.
  useEffect(() => {
    editor.current?.setText(initial);
    setText(initial);
  }, [file, initial]);
  const line = Number(useLocation().query.get('line') ?? '0');
  const { verdict, error, isCurrent } = useVerdict(text);
  const marks = useMemo(
    () =>
      (verdict?.diagnostics ?? []).map(({ range, severity, code, message, help }) => ({
        from: range.start.offset,
        to: range.end.offset,
        // What CodeMirror calls it.
        severity: severity === 'note' ? ('info' as const) : severity,
        message: `${code}: ${message}${help === undefined ? '' : `. ${help}`}`,
      })),
    [verdict],
  );
  useEffect(
    () => keepDraft(text === start ? undefined : { hash: file.hash, text }),
    [text, start, file.hash],
  );
  return (
    <>
      <Notices file={file} />
      <div className="config">
        <div>
          <CodeEditor
            label="Configuration, YAML"
            text={initial}
            marks={marks}
            changed={setText}
            editor={editor}
            opened={() => {
              if (line > 0) editor.current?.goTo(offsetOfLine(initial, line));
            }}
          />
          <SaveBar
            file={file}
            start={start}
            text={text}
            hasErrors={!isCurrent || (verdict?.errorCount ?? 1) > 0}
            restore={() => editor.current?.setText(start)}
            reload={() => {
              keepDraft(undefined);
              reload();
            }}
          />
        </div>
        <div className="beside">
          <ProblemList
            verdict={verdict}
            error={error}
            isCurrent={isCurrent}
            goTo={(offset) => editor.current?.goTo(offset)}
            apply={(fixes) => editor.current?.change(changesOf(fixes))}
          />
          <Outline text={text} goTo={(offset) => editor.current?.goTo(offset)} />
        </div>
      </div>
    </>
  );
}

/** The path of the file, and how it differs from the active configuration. */
function Notices({ file }: { readonly file: ConfigFile }): ReactNode {
  const [isComparing, setComparing] = useState(false);
  const isStale = file.text !== null && file.loaded !== null && file.text !== file.loaded;
  return (
    <>
      <p>
        <code>{file.path}</code>{' '}
        <span className="quiet">
          Secrets are shown as <code>{'<redacted:1>'}</code>: leave these where they are.
        </span>
      </p>
      {file.problem === null ? null : (
        <p className="panel warn">! This is the active configuration, not the file: {file.problem}.</p>
      )}
      {isStale ? (
        <p className="panel warn">
          ! The file differs from what the gateway has loaded.{' '}
          {file.watching
            ? 'It is loaded within a second, unless it has an error: the Overview shows that.'
            : 'A restart applies it.'}{' '}
          <button type="button" aria-pressed={isComparing} onClick={() => setComparing(!isComparing)}>
            Compare loaded and file
          </button>
        </p>
      ) : null}
      {isComparing && isStale ? (
        <section aria-label="Changes from the loaded configuration to the file">
          <Diff
            label="Changes from the loaded configuration to the file"
            before={file.loaded ?? ''}
            after={file.text ?? ''}
          />
        </section>
      ) : null}
    </>
  );
}

/** In source order; of several changes at one place, only the first is applied. */
function changesOf(fixes: readonly Fix[]): Change[] {
  const changes = fixes
    .flatMap(({ edits }) => edits)
    .map(({ range: { start, end }, text }) => ({ from: start.offset, to: end.offset, insert: text }))
    .sort((a, b) => a.from - b.from);
  return changes.filter(({ from }, index) => index === 0 || from >= (changes[index - 1]?.to ?? 0));
}

/** The offset of a line, counted from 1. */
function offsetOfLine(text: string, line: number): number {
  let at = 0;
  for (let count = 1; count < line; count += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return at;
    at = end + 1;
  }
  return at;
}
