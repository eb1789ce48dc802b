// learn-command.ts: `learn`: listens to a broker and proposes sources for its messages. Changes nothing.

import { readFile } from 'node:fs/promises'
import { Command, Option } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatDuration, plural } from '../../std/quantity.ts'
import { Secret } from '../../std/secret.ts'
import { newRandomId } from '../../domain/ids.ts'
import { createMappingReader, packagedNames } from '../../config/config.ts'
import {
  casesYaml,
  createCollector,
  devicesCsv,
  listen,
  propose,
  sourcesYaml,
  type EndReason,
  type ObservedTraffic,
} from '../../learn/learn.ts'
import { brokerUrl, directory, duration } from '../terminal/option-values.ts'
import type { BuildCommand, CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { writeLearned } from './learn-files.ts'
import { learnedJson, learnedText } from './learn-text.ts'
import { notes } from '../terminal/text-format.ts'

type LearnOptions = {
  broker: string
  username?: string
  passwordFile?: string
  ca?: string
  for: number
  topic: string
  json?: boolean
  to?: string
}

const broker = brokerUrl(['mqtt:', 'mqtts:', 'tcp:', 'ssl:', 'ws:', 'wss:'])

export const learnCommand: BuildCommand = (io, done) =>
  new Command('learn')
    .requiredOption('--broker <url>', 'URL of the broker: mqtt, mqtts, ws or wss (required)', broker)
    .option('--username <name>', 'user name (default: none)')
    .option('--password-file <file>', 'file with the password (default: none)')
    .option('--ca <file>', "PEM file of the authority that signed the broker's certificate (default: system)")
    .addOption(
      new Option('--for <duration>', 'how long to listen')
        .argParser(duration(100, 86_400_000))
        .default(60_000, '60s'),
    )
    .option('--topic <filter>', 'listen to this topic filter', '#')
    .option(
      '--to <dir>',
      'write sources.yaml, devices.csv and learned.cases.yaml into this directory',
      directory,
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      notes(
        'Tries every preset on the messages and proposes the one that reads most of them, with a list of ' +
          'the values that will be missing, a device table and cases for `map --test --config FILE`. Changes nothing. Ctrl-C stops listening.',
        'The broker inside a gateway refuses subscriptions; use `tap` there.',
        'Exit status 1: no message arrived.',
      ),
    )
    .action(async (options: LearnOptions) => done(await learn(options, io)))

async function learn(options: LearnOptions, io: CommandIo): Promise<ExitStatus> {
  const collector = createCollector()
  const startedAtMs = systemClock.monotonic()
  const ended = await listen(
    {
      clock: systemClock,
      signal: io.stop,
      onMessage: collector.take,
      onSubscribed: () =>
        void io.stderr.write(`Listening to ${options.topic} for ${formatDuration(options.for)}.\n`),
    },
    {
      brokerUrl: options.broker,
      filter: options.topic,
      clientId: `telemetry-gateway-learn-${newRandomId().slice(0, 8)}`,
      username: options.username,
      password: options.passwordFile === undefined ? undefined : await secretIn(options.passwordFile),
      ca: options.ca === undefined ? undefined : await textIn(options.ca),
      forMs: options.for,
    },
  )
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
    yaml: sourcesYaml(proposed),
    devices: devicesCsv(proposed),
    cases: casesYaml(proposed),
  }
  if (options.to !== undefined) await writeLearned(options.to, learned)
  const text = options.json ? `${JSON.stringify(learnedJson(learned))}\n` : learnedText(learned)
  io.stdout.write(text)
  return traffic.messages === 0 ? 1 : 0
}

function mappings({ env }: CommandIo) {
  const read = createMappingReader({ env, readText: (path) => readFile(path, 'utf8') })
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
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `Cannot read ${path}.`,
      why: codeOf(error) === 'ENOENT' ? 'The file does not exist.' : `${messageOf(error)}.`,
      act: 'Check the path and the permissions of the file.',
      cause: error,
    })
  }
}
