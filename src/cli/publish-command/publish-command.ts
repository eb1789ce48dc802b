// publish-command.ts: `publish`: publishes one message by hand to the broker of a running daemon, and follows
// it: acknowledged, mapped, and the answer of the service with its requestId.
//
//   one-message.ts    connects as a device, publishes with QoS 1, waits for the PUBACK
//   follow.ts         finds the message in the tap, then its payloads in the ledger
//
// It is a real message: what is mapped from it is delivered.

import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { Command, InvalidArgumentError, Option } from 'commander'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'
import { visible, visibleJson } from '../../std/quote.ts'
import { newRandomId } from '../../domain/ids.ts'
import type { Status } from '../../ops/ops.ts'
import { requestDaemon } from '../daemon-client/daemon-client.ts'
import { findDaemon } from '../daemon-client/find-daemon.ts'
import { brokerUrl, duration, mqttVersion, type MqttVersion } from '../terminal/option-values.ts'
import { readPasswordFile } from '../terminal/password-argument.ts'
import type { BuildCommand, CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'
import { followMessage, type Step } from './follow.ts'
import { publishOne } from './one-message.ts'

type PublishOptions = {
  config?: string
  socket?: string
  broker?: string
  topic: string
  message?: string
  file?: string
  client: string
  username?: string
  passwordFile?: string
  ca?: string
  mqtt: MqttVersion
  property?: readonly Property[]
  contentType?: string
  wait: number
  json?: boolean
}

export const publishCommand: BuildCommand = (io, done) =>
  new Command('publish')
    .requiredOption('--topic <topic>', 'topic of the message (required)', topicName)
    .option('--message <text>', 'the message (default: --file, else stdin)')
    .option('--file <file>', 'publish the bytes of this file')
    .option('--config <file>', 'find the daemon by this config')
    .option('--socket <path>', 'use this control socket')
    .option(
      '--broker <url>',
      'address of its broker (default: as the daemon says)',
      brokerUrl(['mqtt:', 'mqtts:', 'ws:', 'wss:']),
    )
    .addOption(
      // Without the id in the help, which the manual is made of.
      new Option('--client <id>', 'client id').default(`publish-${newRandomId().slice(0, 8)}`, 'a new one'),
    )
    .option('--username <name>', 'user name (default: none)')
    .option('--password-file <file>', 'file with the password (default: none)')
    .option('--ca <file>', 'PEM file of the authority of the broker, for mqtts and wss')
    .addOption(
      new Option('--mqtt <version>', 'version of MQTT: 3.1.1 or 5')
        .argParser(mqttVersion)
        .default(4, '3.1.1'),
    )
    .option(
      '--property <name=value>',
      'user property of the message, with --mqtt 5 (repeatable)',
      userProperty,
    )
    .option('--content-type <text>', 'content type of the message, with --mqtt 5')
    .addOption(
      new Option('--wait <duration>', 'wait this long for the answer of the service')
        .argParser(duration(100, 86_400_000))
        .default(30_000, '30s'),
    )
    .option('--json', 'print each step as a line of JSON')
    .addHelpText(
      'after',
      notes(
        'The message is a real one: the payloads made of it are delivered.',
        'Exit status 1: it was not acknowledged, became no payload, or was not delivered in time.',
      ),
    )
    .action(async (options: PublishOptions) => done(await publish(options, io)))

async function publish(options: PublishOptions, io: CommandIo): Promise<ExitStatus> {
  const { topic, client, json, wait: waitMs } = options
  const properties = propertiesOf(options)
  const bytes = await bytesOf(options, io)
  const place = {
    ...(options.config && { config: options.config }),
    ...(options.socket && { socket: options.socket }),
  }
  const daemon = await findDaemon(place, io)
  const broker = options.broker ?? (await brokerOf(daemon, io))
  const { username, passwordFile, ca } = options
  const send = async () =>
    publishOne(
      { topic, bytes, client, stop: io.stop, ...(properties && { properties }) },
      {
        url: broker,
        protocolVersion: options.mqtt,
        ...(username === undefined ? {} : { username }),
        ...(passwordFile === undefined ? {} : { password: await readPasswordFile(passwordFile) }),
        ...(ca === undefined ? {} : { ca: await readInput(ca) }),
      },
    )
  let status: ExitStatus = 0
  for await (const step of followMessage({ daemon, stop: io.stop }, { topic, client, waitMs }, send)) {
    io.stdout.write(json ? `${visibleJson(JSON.stringify(step))}\n` : `${visible(textOf(step))}\n`)
    if (!step.ok) status = 1
    // The message is published: what follows only waits.
    if (step.kind === 'acknowledged') io.endWithReader()
  }
  return status
}

type Property = readonly [name: string, value: string]

/** A value may have "=". */
function userProperty(text: string, before: readonly Property[] = []): readonly Property[] {
  const at = text.indexOf('=')
  if (at < 1 || text.includes('\0')) throw new InvalidArgumentError('Give NAME=VALUE.')
  return [...before, [text.slice(0, at), text.slice(at + 1)]]
}

/** Undefined where the message has none. */
function propertiesOf({ mqtt, property = [], contentType }: PublishOptions) {
  if (property.length === 0 && contentType === undefined) return undefined
  if (mqtt !== 5)
    throw new GatewayError('USAGE', {
      what: '--property and --content-type are given without --mqtt 5.',
      why: 'MQTT 3.1.1 has no properties.',
      act: 'Add --mqtt 5.',
    })
  const userProperties = Object.create(null) as Record<string, string[]>
  for (const [name, value] of property) userProperties[name] = [...(userProperties[name] ?? []), value]
  return {
    ...(property.length > 0 && { userProperties }),
    ...(contentType !== undefined && { contentType }),
  }
}

function textOf({ kind, what }: Step): string {
  return `${kind.padEnd(13)} ${what}`
}

async function bytesOf({ message, file }: PublishOptions, { stdin }: CommandIo): Promise<Buffer> {
  if (message !== undefined && file !== undefined)
    throw new GatewayError('USAGE', {
      what: 'Both --message and --file are given.',
      why: 'One message is published.',
      act: 'Give one of them.',
    })
  if (message !== undefined) return Buffer.from(message)
  return file === undefined || file === '-' ? buffer(stdin) : readInput(file)
}

async function readInput(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    throw unreadable(path, error, 'Give a file that exists and that you may read.')
  }
}

type Daemon = Awaited<ReturnType<typeof findDaemon>>

/** A listener of the daemon, the one without TLS first. */
async function brokerOf(daemon: Daemon, { stop }: CommandIo): Promise<string> {
  const { addresses } = (await requestDaemon({ daemon, path: '/status', method: 'GET', stop })) as Status
  const found = ['mqtt:', 'ws:', 'mqtts:', 'wss:']
    .map((protocol) => addresses.find((url) => url.startsWith(protocol)))
    .find((url) => url !== undefined)
  if (found !== undefined) return found.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  throw new GatewayError('BROKER_UNREACHABLE', {
    what: 'The daemon listens on no address for devices.',
    why: 'It is starting or stopping, or its spool cannot be opened.',
    act: '`telemetry-gateway status` shows the reason.',
  })
}

/** [MQTT-3.3.2-2]: the topic of a message has no wildcards. */
function topicName(text: string): string {
  if (text !== '' && !/[+#\0]/.test(text)) return text
  throw new InvalidArgumentError('Give the topic of a message, without wildcards ("+", "#").')
}
