/** What tests of agents, MCP servers and configurations need. */
export type { StubReply } from './chat-answers.ts';
export type { DenyingPolicy, GatewayMatchers, GatewayStatements, MatcherResult } from './matchers.ts';
export { assertThat, matchers } from './matchers.ts';
export type { ReplayedCassette, ReplayOptions } from './replay-cassette.ts';
export { replayCassette } from './replay-cassette.ts';
export type { StubAnswer } from './stub-answer.ts';
export type { StubMcpServer, StubTool, StubToolCall } from './stub-mcp-server.ts';
export { stubMcpServer } from './stub-mcp-server.ts';
export type { StubModel, StubModelCall } from './stub-model.ts';
export { stubModel } from './stub-model.ts';
export type { TestGateway, TestGatewayOptions } from './test-gateway.ts';
export { testGateway } from './test-gateway.ts';
