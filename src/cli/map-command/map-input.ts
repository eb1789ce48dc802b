// map-input.ts: reads the messages of `map`: each file is one, stdin is one, or each line is one.

import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'

/** MQTT cannot carry a larger message (MQTT 2.2.3). A longer line is an error. */
const messageBytesMax = 268_435_455

export const stdinName = '-'

/** Rejects with INPUT_UNREADABLE. `-` is stdin, and so is no file. */
export async function* messagesIn(
  files: readonly string[],
  stdin: Readable,
  byLine: boolean,
): AsyncGenerator<Buffer> {
  for (const file of files.length === 0 ? [stdinName] : files) {
    if (file === stdinName) {
      if (byLine) yield* linesIn(stdin)
      else yield Buffer.concat((await stdin.toArray()).map(bytesOf))
      continue
    }
    const bytes = await readFile(file).catch((error: unknown) => {
      throw unreadable(
        `the message file ${file}`,
        error,
        'Give files with one message each, or pipe the message to stdin.',
      )
    })
    if (byLine) yield* linesOf(bytes)
    else yield bytes
  }
}

/** Lines without their ends. What follows the last line end is a line unless it is empty. */
async function* linesIn(stream: Readable): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of stream) {
    rest = rest.length === 0 ? bytesOf(chunk) : Buffer.concat([rest, bytesOf(chunk)])
    const end = rest.lastIndexOf(0x0a)
    if (end === -1 && rest.length <= messageBytesMax) continue
    if (end === -1) throw tooLong()
    yield* linesOf(rest.subarray(0, end))
    rest = rest.subarray(end + 1)
  }
  if (rest.length > 0) yield rest
}

/** A chunk is text where the stream has an encoding. */
function bytesOf(chunk: unknown): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk))
}

function* linesOf(bytes: Buffer): Generator<Buffer> {
  let start = 0
  while (start < bytes.length) {
    const found = bytes.indexOf(0x0a, start)
    const end = found === -1 ? bytes.length : found
    yield bytes.subarray(start, end)
    start = end + 1
  }
}

function tooLong(): GatewayError {
  return new GatewayError('INPUT_UNREADABLE', {
    what: 'Cannot read the messages on stdin.',
    why: `A line is longer than ${messageBytesMax} bytes, the largest MQTT message.`,
    act: 'Put one message on each line, or omit --lines.',
  })
}
