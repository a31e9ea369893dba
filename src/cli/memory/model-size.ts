/** `87 MiB`, `456 KiB`, `12 bytes` */
export function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const kib = bytes / 1024;
  return kib < 1024 ? `${Math.round(kib)} KiB` : `${Math.round(kib / 1024)} MiB`;
}
