// websocket-frames.ts: the frames of an attacker over WebSocket. Those that it writes end at random places, so that
// packets are cut; of those that it reads the payload is passed on.

import { frame } from '../../support/websocket-client.ts'
import type { Random } from '../../support/random.ts'

const frameBytesMax = 16 * 1024

/** Mostly frames of some KB, sometimes of a few bytes. */
export function framesOf(bytes: Buffer, random: Random): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const length = 1 + random.below(random.chance(0.2) ? 8 : frameBytesMax)
    frames.push(maskedFrame(bytes.subarray(at, at + length), random))
    at += length
  }
  return Buffer.concat(frames)
}

export function maskedFrame(
  payload: Buffer,
  random: Random,
  options: { opcode?: number; fin?: boolean; announced?: number; reserved?: number } = {},
): Buffer {
  const mask = Buffer.alloc(4)
  mask.writeUInt32BE(random.below(2 ** 32))
  return frame(payload, { mask, ...options })
}

const binary = 2
const close = 8

/** Reads the answer to the request and the frames behind it. Each part of a payload is passed on as it comes. */
export function createFrameParser(calls: {
  answered: (status: number) => void
  payload: (bytes: Buffer) => void
  closed: () => void
}): (chunk: Buffer) => void {
  let isAnswered = false
  let rest = Buffer.alloc(0)
  let opcode = 0
  let left = 0
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    if (!isAnswered && !readAnswer()) return
    while (rest.length > 0) {
      if (left > 0) takePayload()
      else if (!readHead()) return
    }
  }

  function readAnswer(): boolean {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return false
    isAnswered = true
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(rest.toString('latin1', 0, end))?.[1] ?? 0)
    rest = rest.subarray(end + 4)
    calls.answered(status)
    return status === 101
  }

  function readHead(): boolean {
    const [first = 0, short = 0] = rest
    const start = short < 126 ? 2 : short === 126 ? 4 : 10
    if (rest.length < start) return false
    left = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
    opcode = first & 15
    rest = rest.subarray(start)
    if (opcode === close) calls.closed()
    return true
  }

  function takePayload(): void {
    const part = rest.subarray(0, left)
    rest = rest.subarray(part.length)
    left -= part.length
    if (opcode === binary) calls.payload(part)
  }
}
