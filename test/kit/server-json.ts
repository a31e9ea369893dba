/** A package of npm in the format of the MCP registry, with these members. */
export const npmPackage = (more: object = {}) => ({
  registryType: 'npm',
  identifier: '@example/weather-mcp',
  version: '1.2.3',
  transport: { type: 'stdio' },
  ...more,
});

/** A server in the format of the MCP registry, with these packages or other members. */
export const serverJson = (more: object = { packages: [npmPackage()] }) => ({
  $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
  name: 'io.github.example/weather',
  description: 'Forecasts',
  version: '1.2.3',
  ...more,
});
