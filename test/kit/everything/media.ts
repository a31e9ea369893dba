/** One 8-bit RGB pixel, 1x1: the smallest PNG that a decoder accepts. Base64. */
export const pngPixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mOQm/AfAAJ9Aa5PDvJhAAAAAElFTkSuQmCC';

/** One millisecond of silence: PCM, mono, 8 kHz, 8 bit. Base64. */
export const wavSilence = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==';
