// OpenAPI documents of three large APIs, which npm installs here, as targets of one gateway.
import { npmPackages } from '../npm-packages.mjs';

export const { missing, start } = npmPackages('TOOL_SEARCH', [
  '@octokit/openapi@23.0.2',
  '@figma/rest-api-spec@0.43.0',
  '@notionhq/notion-mcp-server@2.5.2',
]);
