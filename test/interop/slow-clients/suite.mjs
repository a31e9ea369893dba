// Clients that are slow on purpose: only time limits end them, so these tests last longer than a minute.
export const missing = () => undefined;
export const start = async () => ({ env: {}, stop: async () => undefined });
