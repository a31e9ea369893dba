/**
 * One server-sent event as text. Line breaks inside `data` become several `data:` lines, which a reader joins
 * again (HTML standard, "Server-sent events" §9.2.6).
 */
export function formatEvent(data: string, event = 'message', id?: string): string {
  const lines = /[\r\n]/.test(data) ? data.split(/\r\n|\r|\n/).join('\ndata: ') : data;
  const frame = `event: ${event}\ndata: ${lines}\n\n`;
  return id === undefined ? frame : `id: ${id}\n${frame}`;
}
