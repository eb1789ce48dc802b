// learn-command.ts: `learn`: listens to a broker and proposes sources for its messages. Changes nothing.

import { Command, Option } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { readUtf8 } from '../../std/file-system/utf8-text.ts'
import { unreadable } from '../../std/gateway-error.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { Secret } from '../../std/secret.ts'
import { newRandomId } from '../../domain/ids.ts'
import { createMappingReader, packagedNames } from '../../config/config.ts'
import {
  bridgeTopics,
  casesYaml,
  createCollector,
  devicesCsv,
  listen,
  propose,
  sourcesYaml,
  type EndReason,
  type ObservedTraffic,
  type Proposed,
} from '../../learn/learn.ts'
import {
  brokerUrl as urlOf,
  directory,
  duration,
  mqttVersion,
  topicFilter,
  type MqttVersion,
} from '../terminal/option-values.ts'
import {
  printNote,
  terminalWidth,
  type BuildCommand,
  type CommandIo,
  type ExitStatus,
} from '../terminal/terminal.ts'
import { bridgeName, bridgeYaml, ownListener, type LearnedBroker } from './bridge-draft.ts'
import { writeLearned } from './learn-files.ts'
import { learnedJson, learnedText } from './learn-text.ts'
import { withProgress } from '../terminal/progress.ts'
import { notes } from '../terminal/text-format.ts'

type LearnOptions = {
  broker: string
  username?: string
  passwordFile?: string
  ca?: string
  mqtt: MqttVersion
  for: number
  topic: string
  json?: boolean
  to?: string
}

const brokerOption = urlOf(['mqtt:', 'mqtts:', 'tcp:', 'ssl:', 'ws:', 'wss:'])

export const learnCommand: BuildCommand = (io, done) =>
  new Command('learn')
    .requiredOption('--broker <url>', 'URL of the broker: mqtt, mqtts, ws or wss (required)', brokerOption)
    .option('--username <name>', 'user name (default: none)')
    .option('--password-file <file>', 'file with the password (default: none)')
    .option('--ca <file>', "PEM file of the authority that signed the broker's certificate (default: system)")
    .addOption(
      new Option('--mqtt <version>', 'version of MQTT: 3.1.1 or 5')
        .argParser(mqttVersion)
        .default(4, '3.1.1'),
    )
    .addOption(
      new Option('--for <duration>', 'how long to listen')
        .argParser(duration(100, 86_400_000))
        .default(60_000, '60s'),
    )
    .option('--topic <filter>', 'listen to this topic filter', topicFilter, '#')
    .option(
      '--to <dir>',
      'write gateway.yaml, devices.csv and learned.cases.yaml into this directory',
      directory,
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      notes(
        'Tries every preset on the messages and proposes the one that reads most of them, with a bridge to ' +
          'this broker, a list of the values that will be missing, a device table and cases for `map --test --config FILE`. Changes nothing. Ctrl-C stops listening.',
        'The broker inside a gateway sends no messages to subscribers; use `tap` there.',
        'Exit status 1: no message arrived.',
      ),
    )
    .action(async (options: LearnOptions) => done(await learn(options, io)))

async function learn(options: LearnOptions, io: CommandIo): Promise<ExitStatus> {
  // With --to the result are files.
  if (options.to === undefined) io.endWithReader()
  const collector = createCollector()
  const startedAtMs = systemClock.monotonic()
  const broker: LearnedBroker = {
    url: options.broker,
    username: options.username,
    password: options.passwordFile === undefined ? undefined : await secretIn(options.passwordFile),
    passwordFile: options.passwordFile,
    ca: options.ca === undefined ? undefined : await textIn(options.ca),
    caFile: options.ca,
  }
  const { url: brokerUrl, username, password, ca } = broker
  const place = {
    brokerUrl,
    filter: options.topic,
    clientId: `telemetry-gateway-learn-${newRandomId().slice(0, 8)}`,
    protocolVersion: options.mqtt,
    username,
    password,
    ca,
    forMs: options.for,
  }
  const said = `Listening to ${options.topic} for ${formatDuration(options.for)}`
  const onSubscribed = () => printNote(io, `${said}.`)
  const ended = await withProgress(io, { what: 'Listening' }, (report) => {
    let done = 0
    const onMessage: typeof collector.take = (...message) => {
      done += 1
      report({ done, unit: 'messages' })
      collector.take(...message)
    }
    return listen({ clock: systemClock, signal: io.stop, onMessage, onSubscribed }, place)
  })
  const traffic = collector.traffic()
  const tookMs = systemClock.monotonic() - startedAtMs
  // A signal ends the listening. The proposal is still made; a second signal ends the process.
  const proposed = await propose(traffic, {
    presets: packagedNames(),
    mappingOf: mappings(io),
    signal: new AbortController().signal,
  })
  const summary = summaryOf(ended, traffic, tookMs)
  const learned = {
    traffic,
    summary,
    ...proposed,
    yaml: await configYaml(proposed, broker, options.topic),
    devices: devicesCsv(proposed),
    cases: casesYaml(proposed),
  }
  if (options.to !== undefined) await writeLearned(options.to, learned)
  const text = options.json
    ? `${JSON.stringify(learnedJson(learned))}\n`
    : learnedText(learned, terminalWidth(io.stdout))
  io.stdout.write(text)
  return traffic.messages === 0 ? 1 : 0
}

/** The bridge and the sources; '' where nothing is proposed. */
async function configYaml(proposed: Proposed, broker: LearnedBroker, heard: string): Promise<string> {
  const topics = bridgeTopics(proposed, heard.replace(/^\$share\/[^/]+\//, ''))
  const sources = sourcesYaml(proposed, bridgeName(broker))
  if (sources === '') return ''
  const ingest = topics.length === 0 ? ownListener : await bridgeYaml(broker, topics)
  return `${ingest}\n${sources}`
}

function mappings({ env }: CommandIo) {
  const read = createMappingReader({ env, readText: readUtf8 })
  return async (source: Readonly<Record<string, unknown>>) => {
    const result = await read(source)
    return result.kind === 'config' ? result.config : null
  }
}

const endTexts: Record<EndReason, string> = {
  time: '',
  stopped: ', ended by a signal',
  lost: ', ended because the broker closed the connection',
}

function summaryOf(ended: EndReason, traffic: ObservedTraffic, tookMs: number): string {
  const { messages, topics, moreTopics } = traffic
  const topicText = `${moreTopics ? 'more than ' : ''}${plural(topics, 'topic')}`
  return `${plural(messages, 'message')} on ${topicText} in ${formatDuration(tookMs)}${endTexts[ended]}.`
}

async function secretIn(path: string): Promise<Secret> {
  return new Secret((await textIn(path)).replace(/\r?\n$/, ''))
}

async function textIn(path: string): Promise<string> {
  try {
    return await readUtf8(path)
  } catch (error) {
    throw unreadable(path, error, 'Check the path and the permissions of the file.')
  }
}
