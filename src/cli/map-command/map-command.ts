// map-command.ts: `map`: what a message becomes. The mapping of the daemon, without broker, spool and network.
//
// A file is one message, byte for byte, and so is what comes on stdin; with --lines each line is one. The
// answer to each is one line of JSON:
//
//   {"source":"trucks","payloads":[{...}]}
//   {"source":"trucks","payloads":[],"ignored":{"reason":"when: lat != null"}}
//   {"source":null,"payloads":[],"unmappable":{"reason":"NO_SOURCE","detail":"..."}}
//   {"source":"vans","payloads":[],"part":{}}
//   {"source":"trucks","payloads":[],"quarantined":{"reason":"FUTURE","detail":"...","device":"..."}}
//
// Where a source collects values or merges, `part` says that the message waits; what became of those that waited stands
// in a line of its own as soon as it is known, at the latest behind all messages: {"source":null,"payloads":[...]}.
// JSONata expressions are evaluated in a thread with the limits of the daemon; where that thread cannot be started the
// answer is {"source":"odd","payloads":[],"deferred":{}}.
//
// With --explain each answer is a text for people instead: where every value came from, and why one is not there
// (explain-text.ts); with --json as well, the same as an object beside the answer: {"source":..,"explained":{...}}.
//
// With --test cases are played instead: see map-cases.ts.
//
// Exit status: 0 when every message was mapped, ignored or kept, 1 when one was unmappable, 2 for wrong use or
// config.

import { Command } from 'commander'
import { assertNever } from '../../std/assert.ts'
import { systemClock } from '../../std/clock.ts'
import { GatewayError } from '../../std/gateway-error.ts'
import type { Message } from '../../domain/message.ts'
import { loadConfig } from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import {
  evaluateMessage,
  mapEvaluation,
  openEvaluator,
  openExplainer,
  openMapper,
  type StateChanges,
  type Explained,
  type Explainer,
  type MapResult,
  type Mapper,
} from '../../mapping/mapping.ts'
import { mapResultText, countOf } from '../terminal/result-text.ts'
import { explainedText } from './explain-text.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { messagesIn } from './map-input.ts'
import { testMapping } from './map-cases.ts'

type MapOptions = {
  config?: string
  topic?: string
  client: string
  user?: string
  certificate?: string
  retain?: boolean
  lines?: boolean
  test?: boolean
  explain?: boolean
  json?: boolean
}

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
    .option('--explain', 'tell of each field where it came from, or why it is not sent')
    .option('--json', 'with --explain: one object for each message')
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
  const providers = providerNames(config.delivery)
  const settings = { providers, clockOffsetMs: () => 0 }
  const explainer = options.explain ? await openExplainer(config, settings) : null
  const mapper = explainer?.mapper ?? (await openMapper(config, settings))
  const answers = openEvaluator(systemClock, mapper)
  try {
    const telling = { io, mapper, explainer, answers, json: options.json === true }
    const read = messagesIn(files, io.stdin, options.lines === true)
    return await tellEach(telling, read, (bytes) => messageFrom(bytes, topic, options))
  } finally {
    await answers?.close()
  }
}

type Telling = {
  io: CommandIo
  mapper: Mapper
  explainer: Explainer | null
  /** Null where no source has an expression. */
  answers: ReturnType<typeof openEvaluator>
  json: boolean
}

async function tellEach(
  telling: Telling,
  read: AsyncIterable<Buffer>,
  messageOfBytes: (bytes: Buffer) => Message,
): Promise<ExitStatus> {
  const { io, mapper, explainer, json } = telling
  let status: ExitStatus = 0
  const tell = async (applied: StateChanges) => {
    if (applied.unsent.some(({ kind }) => kind === 'unmappable')) status = 1
    const lines = linesOfApplied(applied)
    const explained = explainer?.explainApplied(applied)
    if (explained) await write(io, appliedText(explained, lines, json))
    else for (const line of lines) await write(io, `${line}\n`)
  }
  for await (const bytes of read) {
    const message = messageOfBytes(bytes)
    const over = mapper.tick(message.arrivedAt)
    if (over) await tell(over)
    const { result, evaluated } = await mapOne(telling, message)
    if (result.kind === 'unmappable') status = 1
    const explained = explainer?.explain(message, result, evaluated)
    await write(io, explained ? resultText(explained, result, json) : `${lineOf(result)}\n`)
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

/** `evaluated` is what the expression of its source gave, where it has one. */
async function mapOne(
  { mapper, answers }: Telling,
  message: Message,
): Promise<{ result: MapResult; evaluated?: { value: unknown } }> {
  const result = mapper.map(message)
  if (result.kind !== 'deferred' || answers === null) return { result }
  const answer = await evaluateMessage(message, result.source, mapper, answers)
  const became = mapEvaluation(mapper, message, result.source, answer) ?? result
  return answer?.kind === 'value'
    ? { result: became, evaluated: { value: answer.value } }
    : { result: became }
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

/** The line with what is explained in it, or a text for people. */
function resultText(explained: Explained, result: MapResult, json: boolean): string {
  if (json) return `${lineOf(result).slice(0, -1)},"explained":${JSON.stringify(explained)}}\n`
  return `${explainedText(explained, `source ${result.source ?? 'none'}: ${mapResultText(result)}`)}\n`
}

function appliedText(explained: Explained, lines: readonly string[], json: boolean): string {
  if (lines.length === 0) return ''
  if (json) return `{"source":null,"applied":[${lines.join(',')}],"explained":${JSON.stringify(explained)}}\n`
  const payloads = explained.records.filter(({ payloadId }) => payloadId !== null).length
  return `${explainedText(explained, payloads === 0 ? lines.join(' ') : countOf(payloads, 'payload'))}\n`
}

/** What became of messages that waited. */
function linesOfApplied({ payloads, unsent: dropped }: StateChanges): string[] {
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
