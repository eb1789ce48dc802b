// frames.ts: WebSocket by hand, for the load generator: the request, masked frames out, the bytes in frames in.

import { randomBytes } from 'node:crypto'

const binary = 0x82
const isMasked = 0x80
/** Not zero, so that the server unmasks. */
const mask = [0x37, 0xfa, 0x21, 0x3d] as const

export function upgradeRequest(port: number): string {
  const lines = [
    'GET /mqtt HTTP/1.1',
    `Host: 127.0.0.1:${port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Protocol: mqtt',
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

export function frameOf(bytes: Buffer): Buffer {
  const { length } = bytes
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const head = 2 + lengthBytes + mask.length
  const frame = Buffer.allocUnsafe(head + length)
  frame[0] = binary
  frame[1] = isMasked | (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) frame.writeUInt16BE(length, 2)
  if (lengthBytes === 8) frame.writeBigUInt64BE(BigInt(length), 2)
  for (let at = 0; at < mask.length; at += 1) frame[2 + lengthBytes + at] = mask[at] ?? 0
  for (let at = 0; at < length; at += 1) frame[head + at] = (bytes[at] ?? 0) ^ (mask[at & 3] ?? 0)
  return frame
}

/** Calls `onBytes` with what frames contain; `fail` where the answer is not 101 or a frame is not binary. */
export function createFrameReader(
  onBytes: (bytes: Buffer) => void,
  { opened, fail }: { opened: () => void; fail: (why: string) => never },
): (chunk: Buffer) => void {
  let isOpen = false
  let kept: Buffer = Buffer.alloc(0)
  return (chunk) => {
    let bytes = kept.length > 0 ? Buffer.concat([kept, chunk]) : chunk
    if (!isOpen) {
      const end = bytes.indexOf('\r\n\r\n')
      if (end < 0) {
        kept = Buffer.from(bytes)
        return
      }
      const head = bytes.toString('latin1', 0, end)
      if (!head.startsWith('HTTP/1.1 101 ')) fail(`no WebSocket: ${head}`)
      isOpen = true
      bytes = bytes.subarray(end + 4)
      opened()
    }
    while (bytes.length >= 2) {
      if (bytes[0] !== binary) fail(`a frame that is not binary: ${bytes.toString('hex', 0, 8)}`)
      const isLong = bytes[1] === 126
      const head = isLong ? 4 : 2
      if (bytes.length < head) break
      const length = isLong ? bytes.readUInt16BE(2) : (bytes[1] ?? 0)
      if (length > 126 && !isLong) fail('a frame of more than 64 KiB')
      if (bytes.length < head + length) break
      onBytes(bytes.subarray(head, head + length))
      bytes = bytes.subarray(head + length)
    }
    // A copy: the memory of the chunk is read into again.
    kept = Buffer.from(bytes)
  }
}
