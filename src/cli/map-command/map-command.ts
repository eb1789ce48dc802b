// map-command.ts: `map`: maps messages as the daemon would, without broker, spool and network.
//
// A file is one message, byte for byte, and so is stdin; with --lines each line is one message. Each message
// gives one line of JSON:
//
//   {"source":"trucks","payloads":[{...}]}
//   {"source":"trucks","payloads":[],"ignored":{"reason":"when: lat != null"}}
//   {"source":null,"payloads":[],"unmappable":{"reason":"NO_SOURCE","detail":"..."}}
//   {"source":"vans","payloads":[],"part":{}}
//   {"source":"trucks","payloads":[],"quarantined":{"reason":"FUTURE","detail":"...","device":"..."}}
//
// Where a source collects values or merges messages, `part` means that the message waits for others. Their
// payloads follow in a line of their own, at the latest after all messages: {"source":null,"payloads":[...]}.
// Expressions are evaluated in a thread with the limits of the daemon; where the thread cannot start, the
// line is {"source":"odd","payloads":[],"deferred":{}}.
//
// With --explain each answer is a text: where each value comes from, and why one is missing
// (explain-text.ts).
// With --json as well, the line has the same as an object: {"source":..,"explained":{...}}.
// With --test the command runs cases instead (map-cases.ts).

import { Command } from 'commander'
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
  type Explainer,
  type MapResult,
  type Mapper,
  type StateChanges,
} from '../../mapping/mapping.ts'
import { write, type BuildCommand, type CommandIo, type ExitStatus } from '../terminal/terminal.ts'
import { testMapping } from './map-cases.ts'
import { messagesIn } from './map-input.ts'
import { changesText, resultText } from './map-output.ts'
import { notes } from '../terminal/text-format.ts'

type MapOptions = {
  config?: string
  topic?: string
  client: string
  user?: string
  certificate?: string
  identity?: string
  retain?: boolean
  lines?: boolean
  test?: boolean
  explain?: boolean
  json?: boolean
}

export const mapCommand: BuildCommand = (io, done) =>
  new Command('map')
    .argument('[file...]', 'files with one message each (default: stdin)')
    .option('--config <file>', 'config with the sources; required without --test')
    .option('--topic <topic>', 'topic of the messages; required without --test')
    .option('--client <id>', 'client id of the sender', 'map')
    .option('--user <name>', 'user name of the sender (default: none)')
    .option('--certificate <name>', "common name of the sender's certificate (default: none)")
    .option('--identity <name>', 'identity of the sender (default: none)')
    .option('--retain', 'set the retain flag of the messages')
    .option('--lines', 'read each line as one message')
    .option('--explain', 'print where each value comes from, and why one is missing')
    .option('--json', 'with --explain: print one JSON object for each message')
    .option('--test', 'run cases: the given *.cases.yaml files, or those of the config and its presets')
    .addHelpText(
      'after',
      notes(
        'Prints one line of JSON for each message. Uses no network and no spool.',
        'Exit status 1: a message cannot be mapped, or a case fails.',
      ),
    )
    .action(async (files: string[], options: MapOptions) => {
      done(options.test ? await testMapping(io, files, options) : await mapMessages(io, files, options))
    })

async function mapMessages(
  io: CommandIo,
  files: readonly string[],
  options: MapOptions,
): Promise<ExitStatus> {
  const path = required(options.config, '--config <file>')
  const topic = required(options.topic, '--topic <topic>')
  const { config } = await loadConfig(path, { env: io.env })
  const settings = { providers: providerNames(config.delivery), clockOffsetMs: () => 0 }
  const explainer = options.explain ? await openExplainer(config, settings) : null
  const mapper = explainer?.mapper ?? (await openMapper(config, settings))
  const evaluator = openEvaluator(systemClock, mapper)
  try {
    const run = createRun(io, { mapper, explainer, evaluator }, options.json === true)
    for await (const bytes of messagesIn(files, io.stdin, options.lines === true)) {
      await run.map(messageOf(bytes, topic, options))
      if (io.stop.aborted) break
    }
    await run.close()
    return run.status()
  } finally {
    await evaluator?.close()
  }
}

type RunDeps = {
  mapper: Mapper
  explainer: Explainer | null
  /** Null where no source has an expression. */
  evaluator: ReturnType<typeof openEvaluator>
}

function createRun(io: CommandIo, { mapper, explainer, evaluator }: RunDeps, json: boolean) {
  let status: ExitStatus = 0
  return { map, close, status: () => status }

  async function map(message: Message): Promise<void> {
    const closed = mapper.tick(message.arrivedAt)
    if (closed) await print(closed)
    const { result, evaluated } = await evaluate(message)
    if (result.kind === 'unmappable') status = 1
    const explained = explainer?.explain(message, result, evaluated) ?? null
    await write(io, resultText(result, explained, json))
    if (result.kind === 'part') await print(mapper.apply())
  }

  /** Closes what still waits for other messages; one tick may not close all of it. */
  async function close(): Promise<void> {
    while (mapper.nextTickAt() !== null) {
      const changes = mapper.tick(Number.POSITIVE_INFINITY)
      if (changes === null) break
      await print(changes)
    }
  }

  async function print(changes: StateChanges): Promise<void> {
    if (changes.unsent.some(({ kind }) => kind === 'unmappable')) status = 1
    const text = changesText(changes, explainer?.explainApplied(changes) ?? null, json)
    if (text !== '') await write(io, text)
  }

  /** `evaluated` is the value of the expression, where the source has one. */
  async function evaluate(message: Message): Promise<{ result: MapResult; evaluated?: { value: unknown } }> {
    const deferred = mapper.map(message)
    if (deferred.kind !== 'deferred' || evaluator === null) return { result: deferred }
    const evaluation = await evaluateMessage(message, deferred.source, mapper, evaluator)
    const result = mapEvaluation(mapper, message, deferred.source, evaluation) ?? deferred
    return evaluation?.kind === 'value' ? { result, evaluated: { value: evaluation.value } } : { result }
  }
}

function required(value: string | undefined, option: string): string {
  if (value !== undefined) return value
  throw new GatewayError('USAGE', {
    what: `The option '${option}' is missing.`,
    why: 'The command needs it to find the source of the messages.',
    act: 'Add the option. Only --test works without it.',
  })
}

function messageOf(bytes: Buffer, topic: string, options: MapOptions): Message {
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
      identity: options.identity ?? null,
    },
    arrivedAt: systemClock.now(),
  }
}
