// A minimal relay between HTTP and one stdio MCP server: it only replaces request ids. No session checks, no event
// streams, no limits, no logs.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

const child = spawn(process.execPath, [process.argv[2]], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = new Map();
let nextId = 1;

createInterface({ input: child.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  const { id, response } = waiting.get(message.id);
  waiting.delete(message.id);
  message.id = id;
  response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'bare' });
  response.end(JSON.stringify(message));
});

const server = createServer({ noDelay: true }, (request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk) => {
    body += chunk;
  });
  request.on('end', () => {
    const message = JSON.parse(body);
    if (message.id === undefined) response.writeHead(202).end();
    else {
      waiting.set(nextId, { id: message.id, response });
      message.id = nextId;
      nextId += 1;
    }
    child.stdin.write(`${JSON.stringify(message)}\n`);
  });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
process.on('SIGTERM', () => {
  child.kill();
  process.exit();
});
