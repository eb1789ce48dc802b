// map.ts: `map`: what a message becomes. The mapping of the daemon, without broker, spool and network.
//
// A file is one message, byte for byte, and so is what comes on stdin; with --lines each line is one. The
// answer to each is one line of JSON:
//
//   {"source":"trucks","payloads":[{...}]}
//   {"source":"trucks","payloads":[],"ignored":{"reason":"when: lat != null"}}
//   {"source":null,"payloads":[],"unmappable":{"reason":"NO_SOURCE","detail":"..."}}
//
// Exit status: 0 when every message was mapped or ignored, 1 when one was unmappable, 2 for wrong use or
// config.

import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { Command } from 'commander'
import { assertNever } from '../std/assert.ts'
import { systemClock } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/fault.ts'
import type { Message } from '../domain/message.ts'
import { loadConfig } from '../config/config.ts'
import { openMapper, type MapResult } from '../mapping/mapping.ts'
import type { CommandIo, ExitStatus } from './io.ts'

type MapOptions = {
  config: string
  topic: string
  client: string
  user?: string
  certificate?: string
  retain?: boolean
  lines?: boolean
}

/** MQTT carries no larger message (MQTT 2.2.3); a longer line is cut into none. */
const messageBytesMax = 268_435_455

export function mapCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('map')
    .description('what messages become: one line of JSON for each; touches no network and no spool')
    .argument('[file...]', 'messages, one in each file; without any, stdin is the message')
    .requiredOption('--config <file>', 'the config with the sources')
    .requiredOption('--topic <topic>', 'the topic that the messages came on')
    .option('--client <id>', 'client id of the sender', 'map')
    .option('--user <name>', 'user name of the sender')
    .option('--certificate <name>', "common name of the sender's certificate")
    .option('--retain', 'the messages came with the retain flag')
    .option('--lines', 'each line is a message')
    .addHelpText('after', '\nExit status 1 when a message was unmappable, 0 when all were mapped or ignored.')
    .action(async (files: string[], options: MapOptions) => {
      const { config } = await loadConfig(options.config, { env: io.env })
      const mapper = await openMapper(config)
      let status: ExitStatus = 0
      for await (const bytes of messagesIn(files, io.stdin, options.lines === true)) {
        const result = mapper.map(messageFrom(bytes, options))
        if (result.kind === 'unmappable') status = 1
        await write(io, `${lineOf(result)}\n`)
        if (io.stop.aborted) break
      }
      done(status)
    })
}

function messageFrom(bytes: Buffer, options: MapOptions): Message {
  return {
    topic: options.topic,
    bytes,
    qos: 1,
    retain: options.retain === true,
    dup: false,
    sender: {
      clientId: options.client,
      userName: options.user ?? null,
      certificateName: options.certificate ?? null,
    },
    arrivedAt: systemClock.now(),
  }
}

async function* messagesIn(
  files: readonly string[],
  stdin: Readable,
  byLine: boolean,
): AsyncGenerator<Buffer> {
  if (files.length === 0) {
    if (byLine) yield* linesIn(stdin)
    else yield Buffer.concat((await stdin.toArray()).map(bytesOf))
    return
  }
  for (const file of files) {
    const bytes = await readFile(file).catch((error: unknown) => {
      throw unreadable(file, error)
    })
    if (byLine) yield* linesOf(bytes)
    else yield bytes
  }
}

/** Lines without their ends; the piece behind the last line end only where there is something in it. */
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

/** A chunk of a stream that may have been told to decode. */
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

function lineOf(result: MapResult): string {
  const source = JSON.stringify(result.source)
  switch (result.kind) {
    case 'payloads':
      return `{"source":${source},"payloads":[${result.payloads.map(({ json }) => json).join(',')}]}`
    case 'ignored':
      return `{"source":${source},"payloads":[],"ignored":${JSON.stringify({ reason: result.reason })}}`
    case 'unmappable': {
      const { device, reason, detail } = result
      return `{"source":${source},"payloads":[],"unmappable":${JSON.stringify({ reason, detail, device })}}`
    }
    default:
      return assertNever(result)
  }
}

/** Waits where the reader is slower than we are. */
async function write({ stdout }: CommandIo, text: string): Promise<void> {
  if (stdout.write(text)) return
  await new Promise<void>((resolve) => {
    stdout.once('drain', resolve)
  })
}

function unreadable(file: string, error: unknown): GatewayError {
  return new GatewayError('INPUT_UNREADABLE', {
    what: `Cannot read the message file ${file}.`,
    why: codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`,
    act: 'Name files with one message each, or pipe the message in.',
    cause: error,
  })
}

function tooLong(): GatewayError {
  return new GatewayError('INPUT_UNREADABLE', {
    what: 'Cannot read the messages on stdin.',
    why: `A line is longer than ${messageBytesMax} bytes, the largest message of MQTT.`,
    act: 'Give one message a line, or leave --lines away.',
  })
}
