// The documentation as a site: VitePress and its packages are installed at the first run.
export function missing() {
  return undefined;
}

export async function start() {
  return { env: {}, stop: async () => undefined };
}
