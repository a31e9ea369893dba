import type { ReactNode } from 'react';
import { Command, Problem } from '../shared/problem.tsx';
import { storedKey } from './key.ts';
import { API } from './model.ts';

/** Shown if nothing is stored yet: how to store something. */
export function Empty({
  title,
  children,
  call,
}: {
  readonly title: string;
  readonly children: ReactNode;
  readonly call: string;
}): ReactNode {
  return (
    <div className="panel empty">
      <h2>{title}</h2>
      <p>{children}</p>
      <Command text={call} />
    </div>
  );
}

/** A shell command that calls the backend. A key is a variable, so that it does not enter the shell's history. */
export function curl(path: string, body: object): string {
  const key = storedKey() === null ? '' : ` \\\n  -H "authorization: Bearer $MEMORY_API_KEY"`;
  const json = JSON.stringify(body).replaceAll("'", String.raw`'\''`);
  return `curl ${location.origin}${API}${path} \\\n  -H 'content-type: application/json'${key} \\\n  -d '${json}'`;
}

/** A tool call in the form that an MCP client sends. */
export function toolCall(name: string, args: object): string {
  return JSON.stringify(
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } },
    null,
    2,
  );
}

/** A failed request to the backend: what was requested, what happened, what to do next. */
export function Unreachable({
  error,
  retry,
}: {
  readonly error: Error & { readonly status?: number };
  readonly retry: () => void;
}): ReactNode {
  if (error.status === 401)
    return <Problem title="The key was rejected" error={error} retry={() => location.reload()} />;
  if (error.status !== undefined)
    return <Problem title="The memory backend rejected the request" error={error} retry={retry} />;
  return (
    <Problem
      title={`The memory backend at ${location.origin} does not answer`}
      error={error}
      command={`curl -i ${location.origin}/health\nagctl memory-backend serve${location.port === '' ? '' : ` --port ${location.port}`}`}
      retry={retry}
    />
  );
}
