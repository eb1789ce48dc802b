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
// Messages come from files or stdin, from lines with topics (--ndjson), from the dead letters of the daemon
// or from its tap (map-messages.ts). Where they have topics of their own, each line begins with "topic".
//
// Where a source collects values or merges messages, `part` means that the message waits for others. Their
// payloads follow in a line of their own, at the latest after all messages: {"source":null,"payloads":[...]}.
//
// With --explain each answer is a text: where each value comes from, and why one is missing
// (explain-text.ts).
// With --json as well, the line has the same as an object: {"source":..,"explained":{...}}.
// With --test the command runs cases instead (map-cases.ts). With --watch it does all of that again after
// each change of a file that it read (map-watch.ts).

import { Command } from 'commander'
import { defaultProvider, type ProviderName } from '../../domain/ids.ts'
import type { Message } from '../../domain/message.ts'
import { loadConfig } from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import type { MappingConfig } from '../../mapping/config.ts'
import {
  openExplainer,
  openMapper,
  type Explainer,
  type Mapper,
  type StateChanges,
} from '../../mapping/mapping.ts'
import {
  printNote,
  terminalWidth,
  write,
  type BuildCommand,
  type CommandIo,
  type ExitStatus,
} from '../terminal/terminal.ts'
import { testMapping } from './map-cases.ts'
import { takeMessages } from './map-messages.ts'
import { checkOptions, withMapOptions, wrongUse, type MapOptions } from './map-options.ts'
import { changesText, resultText } from './map-output.ts'
import { chosenTopicText, exampleTopics } from './example-topics.ts'
import { plainFiles, watchMapping, type ReadFiles, type TakeAll } from './map-watch.ts'
import { presetMapping } from './preset-mapping.ts'

export const mapCommand: BuildCommand = (io, done) =>
  withMapOptions(new Command('map')).action(async (files: string[], options: MapOptions) => {
    if (!options.test) checkOptions(options, files)
    const run = options.test
      ? (readFiles: ReadFiles) => testMapping(io, files, options, readFiles)
      : (readFiles: ReadFiles, take: TakeAll) => mapMessages(io, options, readFiles, take)
    const takeAll: TakeAll = (topic, take) => takeMessages(io, files, { options, topic }, take)
    done(options.watch ? await watchMapping(io, options, takeAll, run) : await run(plainFiles, takeAll))
  })

async function mapMessages(
  io: CommandIo,
  options: MapOptions,
  readFiles: ReadFiles,
  takeAll: TakeAll,
): Promise<ExitStatus> {
  io.endWithReader()
  const { config, providers } = await mappingOf(options, io, readFiles)
  const topic = topicOf(options, config, io)
  const settings = { providers, clockOffsetMs: () => 0, isRecorded: true }
  const explainer = options.explain ? await openExplainer(config, settings) : null
  const mapper = explainer?.mapper ?? (await openMapper(config, settings))
  const form = {
    json: options.json === true,
    hasTopics: readsTopics(options),
    width: terminalWidth(io.stdout),
  }
  const run = createRun(io, { mapper, explainer }, form)
  await takeAll(topic, run.map)
  await run.close()
  if (run.hasForeignTopics() && options.preset !== undefined) printNote(io, foreignTopics(config))
  return run.status()
}

type RunDeps = {
  mapper: Mapper
  explainer: Explainer | null
}

function createRun(
  io: CommandIo,
  { mapper, explainer }: RunDeps,
  { json, hasTopics, width }: { json: boolean; hasTopics: boolean; width: number },
) {
  let status: ExitStatus = 0
  let foreign = false
  return { map, close, status: () => status, hasForeignTopics: () => foreign }

  /** Always true: the next message follows. */
  async function map(message: Message): Promise<boolean> {
    const closed = mapper.tick(message.arrivedAt)
    if (closed) await print(closed)
    const result = mapper.map(message)
    if ([result, ...(result.rest ?? [])].some(({ kind }) => kind === 'unmappable')) status = 1
    if (result.kind === 'unmappable' && result.reason === 'NO_SOURCE') foreign = true
    const explained = explainer?.explain(message, result) ?? null
    await write(io, resultText(result, explained, { json, topic: hasTopics ? message.topic : null, width }))
    if (result.kind === 'part') await print(result.apply())
    return true
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
    const text = changesText(changes, explainer?.explainApplied(changes) ?? null, { json, width })
    if (text !== '') await write(io, text)
  }
}

/** The messages say their topics themselves. */
function readsTopics({ ndjson, fromTap, fromDeadLetters }: MapOptions): boolean {
  return ndjson === true || fromTap === true || fromDeadLetters === true
}

async function mappingOf(
  options: MapOptions,
  io: CommandIo,
  { readText, willRead }: ReadFiles,
): Promise<{ config: MappingConfig; providers: readonly ProviderName[] }> {
  const { preset, config: path = '' } = options
  if (preset !== undefined)
    return { config: await presetMapping({ ...options, preset }, io, readText), providers: [defaultProvider] }
  const { config } = await loadConfig(path, { env: io.env, readFile: readText })
  if (config.devices.file !== undefined) await willRead(config.devices.file)
  return { config, providers: providerNames(config.delivery) }
}

/** Undefined where each message has its own. */
function topicOf(options: MapOptions, config: MappingConfig, io: CommandIo): string | undefined {
  if (options.topic !== undefined || readsTopics(options)) return options.topic
  const [source] = config.sources
  if (options.preset !== undefined && source) {
    const topics = exampleTopics(source)
    printNote(io, chosenTopicText(topics, source).trimEnd())
    return topics[0] ?? ''
  }
  throw wrongUse(
    'The topic of the messages is missing.',
    'Give --topic TOPIC, or --ndjson for lines with topics.',
  )
}

function foreignTopics({ sources }: MappingConfig): string {
  const topics = sources.flatMap(({ topic }) => topic).join(', ')
  return `The preset reads ${topics}. Give --source-topic with the pattern of your topics, such as fleet/{device}.`
}
