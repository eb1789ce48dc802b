// message-text.ts: the bytes of a message as they are shown and written.

/** As text where the bytes are UTF-8 text. */
export function bytesText(bytes: Buffer): { message?: string; hex?: string } {
  const text = bytes.toString()
  return Buffer.from(text).equals(bytes) && !text.includes('\0')
    ? { message: text }
    : { hex: bytes.toString('hex') }
}
