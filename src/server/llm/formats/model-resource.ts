/** Clients name a model `gemini-2.5-pro` or `models/gemini-2.5-pro`. The name stays one segment of the path. */
export function modelResource(model: string): string {
  const [, kind = 'models', name = model] = /^(models|tunedModels)\/(.+)$/.exec(model) ?? [];
  return `${kind}/${encodeURIComponent(name)}`;
}
