// Looks into a process that was started with `--inspect=127.0.0.1:PORT`.
import { request } from 'undici';

/** A connection to the inspector of a process. */
async function connect(port) {
  const { body } = await request(`http://127.0.0.1:${port}/json`);
  const [{ webSocketDebuggerUrl }] = await body.json();
  const socket = new WebSocket(webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  let id = 0;
  const send = (method, params = {}) => {
    id += 1;
    const own = id;
    const answered = new Promise((resolve) => {
      socket.addEventListener('message', function read({ data }) {
        const message = JSON.parse(data);
        if (message.id !== own) return;
        socket.removeEventListener('message', read);
        resolve(message.result);
      });
    });
    socket.send(JSON.stringify({ id: own, method, params }));
    return answered;
  };
  return { send, close: () => socket.close() };
}

/** Triggers garbage collection. */
export async function collectGarbage(port) {
  const { send, close } = await connect(port);
  await send('HeapProfiler.collectGarbage');
  close();
}

/**
 * Number of timers that are scheduled, also those that do not keep the process alive and that
 * `process.getActiveResourcesInfo()` therefore leaves out. Collects garbage.
 */
export async function countTimers(port) {
  const { send, close } = await connect(port);
  const { result: prototype } = await send('Runtime.evaluate', {
    expression: 'setTimeout(() => {}, 0).constructor.prototype',
  });
  const { objects } = await send('Runtime.queryObjects', {
    prototypeObjectId: prototype.objectId,
    objectGroup: 'timers',
  });
  const { result } = await send('Runtime.callFunctionOn', {
    objectId: objects.objectId,
    functionDeclaration:
      'function () { return this.filter((timer) => timer._idleTimeout > 0 && !timer._destroyed).length; }',
    returnByValue: true,
  });
  await send('Runtime.releaseObjectGroup', { objectGroup: 'timers' });
  close();
  return result.value;
}
