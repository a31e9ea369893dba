import { type FormEvent, type ReactNode, useState } from 'react';
import { ApiError } from '../../shared/api.ts';
import { download } from '../../shared/download.ts';

/** CPU and heap profiles, as files for pprof. */
export function Profiles(): ReactNode {
  const [seconds, setSeconds] = useState('10');
  const [busy, setBusy] = useState('');
  const [problem, setProblem] = useState('');
  const take = (what: string, path: string, file: string): void => {
    setBusy(what);
    setProblem('');
    fetched(path)
      .then((bytes) => download(file, bytes, 'application/octet-stream'))
      .catch((error: Error) => setProblem(error.message))
      .finally(() => setBusy(''));
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    take(`Recording the CPU for ${seconds} s …`, `/debug/pprof/profile?seconds=${seconds}`, 'cpu.pprof');
  };
  return (
    <section className="panel" aria-labelledby="profiles">
      <h2 id="profiles">Profiles</h2>
      <form className="row" onSubmit={submit}>
        <label>
          Seconds
          <input
            type="number"
            min={1}
            max={300}
            required
            value={seconds}
            onChange={(event) => setSeconds(event.target.value)}
          />
        </label>
        <button type="submit" disabled={busy !== ''}>
          Record CPU profile
        </button>
        <button
          type="button"
          disabled={busy !== ''}
          onClick={() =>
            take(
              `Recording allocations for ${seconds} s …`,
              `/debug/pprof/heap?seconds=${seconds}`,
              'heap.pprof',
            )
          }
        >
          Record heap profile
        </button>
      </form>
      <p role="status">{busy}</p>
      {problem === '' ? null : (
        <p role="alert" className="bad">
          ✗ {problem}
        </p>
      )}
      <p className="quiet">
        To open one: <code>go tool pprof -http=: cpu.pprof</code>, or drop it on speedscope.
      </p>
    </section>
  );
}

async function fetched(path: string): Promise<ArrayBuffer> {
  const response = await fetch(path);
  // The answer that pprof expects of a system without them.
  if (response.status === 404 && path.startsWith('/debug/pprof/profile'))
    throw new ApiError('The gateway cannot record CPU profiles on this system.', 404);
  if (!response.ok)
    throw new ApiError(
      (await response.text()).trim() || `${path} answered ${response.status}`,
      response.status,
    );
  return await response.arrayBuffer();
}
