// learn-command.ts: `learn`: listens to a broker and proposes the sources for what it hears. Changes nothing anywhere.

import { readFile } from 'node:fs/promises'
import { Command, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { formatDuration, parseDuration } from '../../std/quantity.ts'
import { Secret } from '../../std/secret.ts'
import { newRandomId } from '../../domain/ids.ts'
import { createMappingReader, packagedNames } from '../../config/config.ts'
import {
  sourcesYaml,
  createCollector,
  listen,
  propose,
  type EndReason,
  type ObservedTraffic,
} from '../../learn/learn.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { learnedJson, learnedText } from './learn-text.ts'

type LearnOptions = {
  broker: string
  username?: string
  passwordFile?: string
  ca?: string
  for: number
  topic: string
  json?: boolean
}

export function learnCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('learn')
    .description('listens to a broker and proposes the sources for what it hears; changes nothing')
    .requiredOption(
      '--broker <url>',
      'mqtt:// or mqtts:// address of a broker that others publish to',
      brokerUrl,
    )
    .option('--username <name>', 'user name at the broker')
    .option('--password-file <file>', 'file with the password')
    .option('--ca <file>', 'PEM file of the authority that signed the certificate of the broker')
    .addOption(
      new Option('--for <duration>', 'how long to listen').argParser(duration).default(60_000, '60s'),
    )
    .option('--topic <filter>', 'what to listen to', '#')
    .option('--json', 'one JSON document')
    .addHelpText(
      'after',
      '\nEvery preset is tried on what is heard; the one that makes the most of it is proposed, and what will be' +
        '\nmissing is said. The broker inside a gateway refuses to be listened to: there use `tap`. Ctrl-C ends the' +
        '\nlistening early.\nExit status 1: nothing was heard.',
    )
    .action(async (options: LearnOptions) => done(await learn(options, io)))
}

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
  // A stop ends the listening, not the thinking about what was heard; a second one ends the process.
  const proposed = await propose(traffic, {
    presets: packagedNames(),
    mappingOf: mappings(io),
    signal: new AbortController().signal,
  })
  const learned = {
    traffic,
    ended: endedText(ended, traffic, tookMs),
    ...proposed,
    block: sourcesYaml(proposed),
  }
  io.stdout.write(options.json ? `${JSON.stringify(learnedJson(learned))}\n` : learnedText(learned))
  return traffic.messages === 0 ? 1 : 0
}

function mappings({ env }: CommandIo) {
  const read = createMappingReader({ env, readText: (path) => readFile(path, 'utf8') })
  return async (source: Readonly<Record<string, unknown>>) => {
    const result = await read(source)
    return result.kind === 'config' ? result.config : null
  }
}

function endedText(
  ended: EndReason,
  { messages, topics, moreTopics }: ObservedTraffic,
  tookMs: number,
): string {
  const early = {
    time: '',
    stopped: ', when it was stopped',
    lost: ', when the broker closed the connection',
  }
  const more = moreTopics ? 'more than ' : ''
  return `${messages} messages on ${more}${topics} topics in ${formatDuration(tookMs)}${early[ended]}.`
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
      why: codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`,
      act: 'Check the path and who may read it.',
      cause: error,
    })
  }
}

function brokerUrl(text: string): string {
  const protocols = ['mqtt:', 'mqtts:', 'tcp:', 'ssl:', 'ws:', 'wss:']
  if (URL.canParse(text)) {
    const { protocol, hostname } = new URL(text)
    if (protocols.includes(protocol) && hostname !== '') return text
  }
  throw new InvalidArgumentError('Write it as mqtt://broker.example:1883.')
}

function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 100 && ms <= 86_400_000) return ms
  throw new InvalidArgumentError('It must be a duration from 100ms to 1d, such as 60s.')
}
