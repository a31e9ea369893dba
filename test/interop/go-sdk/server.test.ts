import { describeServed } from '../served.ts';

const program = process.env['GO_SDK'] as string;

describeServed('a stdio server of the Go SDK', { program: [program, 'stdio'], transport: 'stdio' });
describeServed('an HTTP server of the Go SDK with sessions', {
  program: [program, 'http'],
  transport: 'http',
});
describeServed('an HTTP server of the Go SDK without sessions', {
  program: [program, 'stateless'],
  transport: 'http',
  // It does not notice that the client has closed a response stream.
  lacks: { '2026-07-28': ['cancel'], '2025-11-25': ['sampling', 'elicitation', 'subscribe', 'cancel'] },
});
