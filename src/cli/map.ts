// map.ts: `map`: what a message becomes. The mapping of the daemon, without broker, spool and network.
//
// A file is one message, byte for byte, and so is what comes on stdin; with --lines each line is one. The
// answer to each is one line of JSON:
//
//   {"source":"trucks","payloads":[{...}]}
//   {"source":"trucks","payloads":[],"ignored":{"reason":"when: lat != null"}}
//   {"source":null,"payloads":[],"unmappable":{"reason":"NO_SOURCE","detail":"..."}}
//   {"source":"vans","payloads":[],"part":{}}
//   {"source":"trucks","payloads":[],"quarantined":{"reason":"FUTURE","detail":"...","device":"..."}}
//   {"source":"odd","payloads":[],"deferred":{}}
//
// Where a source collects values or merges, `part` says that the message waits; what became of those that waited stands
// in a line of its own as soon as it is known, at the latest behind all messages: {"source":null,"payloads":[...]}. A
// deferred one waits for its JSONata expression, which is not evaluated here.
//
// With --test cases are played instead: see map-test.ts.
//
// Exit status: 0 when every message was mapped, ignored or kept, 1 when one was unmappable, 2 for wrong use or
// config.

import { readFile } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { Command } from 'commander'
import { assertNever } from '../std/assert.ts'
import { systemClock } from '../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../std/fault.ts'
import type { Message } from '../domain/message.ts'
import { loadConfig } from '../config/config.ts'
import { deliveryOptions } from '../delivery/config.ts'
import { openMapper, type Applied, type MapResult } from '../mapping/mapping.ts'
import type { CommandIo, ExitStatus } from './io.ts'
import { testMapping } from './map-test.ts'

type MapOptions = {
  config?: string
  topic?: string
  client: string
  user?: string
  certificate?: string
  retain?: boolean
  lines?: boolean
  test?: boolean
}

/** MQTT carries no larger message (MQTT 2.2.3); a longer line is cut into none. */
const messageBytesMax = 268_435_455

export function mapCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('map')
    .description('what messages become: one line of JSON for each; touches no network and no spool')
    .argument('[file...]', 'messages, one in each file; without any, stdin is the message')
    .option('--config <file>', 'the config with the sources')
    .option('--topic <topic>', 'the topic that the messages came on')
    .option('--client <id>', 'client id of the sender', 'map')
    .option('--user <name>', 'user name of the sender')
    .option('--certificate <name>', "common name of the sender's certificate")
    .option('--retain', 'the messages came with the retain flag')
    .option('--lines', 'each line is a message')
    .option('--test', 'play cases: files ending in .cases.yaml, or those of the config and its presets')
    .addHelpText(
      'after',
      '\n--config and --topic are needed, but for --test.' +
        '\nExit status 1 when a message was unmappable or a case failed, 0 when all were mapped or ignored.',
    )
    .action(async (files: string[], options: MapOptions) => {
      done(options.test ? await testMapping(io, files, options) : await mapMessages(io, files, options))
    })
}

async function mapMessages(
  io: CommandIo,
  files: readonly string[],
  options: MapOptions,
): Promise<ExitStatus> {
  const path = required(options.config, '--config <file>')
  const topic = required(options.topic, '--topic <topic>')
  const { config } = await loadConfig(path, { env: io.env })
  const providers = deliveryOptions(config.delivery).providers.map(({ name }) => name)
  const mapper = await openMapper(config, { providers, clockOffsetMs: () => 0 })
  let status: ExitStatus = 0
  const tell = async (applied: Applied) => {
    if (applied.dropped.some(({ kind }) => kind === 'unmappable')) status = 1
    for (const line of linesOfApplied(applied)) await write(io, `${line}\n`)
  }
  for await (const bytes of messagesIn(files, io.stdin, options.lines === true)) {
    const message = messageFrom(bytes, topic, options)
    const over = mapper.tick(message.arrivedAt)
    if (over) await tell(over)
    const result = mapper.map(message)
    if (result.kind === 'unmappable') status = 1
    await write(io, `${lineOf(result)}\n`)
    if (result.kind === 'part') await tell(mapper.apply())
    if (io.stop.aborted) break
  }
  // More may be open than one step closes.
  while (mapper.nextTickAt() !== null) {
    const applied = mapper.tick(Number.POSITIVE_INFINITY)
    if (applied === null) break
    await tell(applied)
  }
  return status
}

function required(value: string | undefined, option: string): string {
  if (value !== undefined) return value
  throw new GatewayError('USAGE', {
    what: `The option '${option}' is missing.`,
    why: 'Without it nobody knows which source reads the messages.',
    act: 'Add it; only --test goes without.',
  })
}

function messageFrom(bytes: Buffer, topic: string, options: MapOptions): Message {
  return {
    topic,
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
    case 'part':
      return `{"source":${source},"payloads":[],"part":{}}`
    case 'deferred':
      return `{"source":${source},"payloads":[],"deferred":{}}`
    case 'quarantined':
    case 'unmappable': {
      const { kind, device, reason, detail } = result
      return `{"source":${source},"payloads":[],"${kind}":${JSON.stringify({ reason, detail, device })}}`
    }
    default:
      return assertNever(result)
  }
}

/** What became of messages that waited. */
function linesOfApplied({ payloads, dropped }: Applied): string[] {
  const lines = dropped.map((one) => {
    const source = JSON.stringify(one.source)
    const { reason } = one
    const why = one.kind === 'ignored' ? { reason } : { reason, detail: one.detail, device: one.device }
    return `{"source":${source},"payloads":[],"${one.kind}":${JSON.stringify(why)}}`
  })
  if (payloads.length === 0) return lines
  return [`{"source":null,"payloads":[${payloads.map(({ json }) => json).join(',')}]}`, ...lines]
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
