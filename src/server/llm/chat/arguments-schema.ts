/**
 * JSON Schema of the arguments of a function, as all providers accept it. MCP servers and clients leave out what an object
 * without properties does not need; OpenAI and LM Studio refuse an object without `properties`, Bedrock and Claude a schema
 * without a type.
 */
export function argumentsSchema(
  parameters: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  const isComplete = parameters['type'] !== undefined && parameters['properties'] !== undefined;
  return isComplete ? parameters : { type: 'object', properties: {}, ...parameters };
}
