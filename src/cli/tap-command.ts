// tap-command.ts: `tap`: messages of the running daemon as they arrive, raw and mapped, until --count or a
// signal.

import { Command } from 'commander'
import { zonedTime } from '../std/clock.ts'
import { plural } from '../std/quantity.ts'
import { bounded, visible } from '../std/quote.ts'
import { namedProperties, type MessageProperties, type UserProperties } from '../domain/message.ts'
import { daemonUnreachable, requestDaemonLines } from './daemon-client/daemon-client.ts'
import { withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { findDaemon } from './daemon-client/find-daemon.ts'
import { wholeNumber } from './terminal/option-values.ts'
import { write, type BuildCommand, type CommandIo, type ExitStatus } from './terminal/terminal.ts'
import { mapResultText, notes } from './terminal/text-format.ts'

type TapOptions = DaemonOptions & { device?: string; topic?: string; source?: string; count?: number }

/** A line of the daemon (ops/http/streams/tap-stream.ts). */
type TapLine = {
  kind: string
  at?: string
  topic?: string
  qos?: number
  retain?: boolean
  dup?: boolean
  client?: string
  user?: string | null
  certificate?: string | null
  identity?: string | null
  userProperties?: UserProperties
  properties?: MessageProperties
  message?: string
  hex?: string
  cutBytes?: number
  source?: string | null
  /** `kind` of the MapResult. */
  result?: string
  payloads?: unknown[]
  morePayloads?: number
  reason?: string
  detail?: string
  /** Records of the message that are kept. */
  rest?: { kind: string; reason: string; detail: string }[]
  count?: number
}

/** The daemon sends a line every few seconds, also without messages. */
const silenceMaxMs = 20_000
const shownLengthMax = 2000

export const tapCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('tap'))
    .option('--device <name>', 'only messages about this device')
    .option('--topic <filter>', 'only messages whose topic matches, for example telemetry/v1/+/data')
    .option('--source <name>', 'only messages that this source reads')
    .option('--count <messages>', 'end after this many messages (default: no end)', wholeNumber(1, 1e15))
    .addHelpText(
      'after',
      notes(
        'Shows at most 100 messages per second, and the number of those not shown. The daemon serves up ' +
          'to four taps at once; they do not slow it down. Passwords are never shown. Ctrl-C ends it.',
      ),
    )
    .action(async (options: TapOptions) => done(await tap(options, io)))

async function tap(options: TapOptions, io: CommandIo): Promise<ExitStatus> {
  io.endWithReader()
  const daemon = await findDaemon(options, io)
  const { url } = daemon
  const silent = new AbortController()
  const silence = setTimeout(
    () => silent.abort(new Error(`The daemon sent nothing for ${silenceMaxMs / 1000} s`)),
    silenceMaxMs,
  )
  const stop = AbortSignal.any([io.stop, silent.signal])
  let left = options.count ?? Number.POSITIVE_INFINITY
  try {
    for await (const text of requestDaemonLines({
      daemon,
      path: `/tap?${queryOf(options)}`,
      method: 'GET',
      stop,
    })) {
      silence.refresh()
      const line = parseLine(url, text)
      if (line.kind === 'alive') continue
      await write(io, options.json ? `${text}\n` : textOf(line))
      if (line.kind === 'message') left -= 1
      if (left === 0) return 0
    }
    throw daemonUnreachable(url, 'The daemon closed the connection, probably because it stopped')
  } catch (error) {
    if (io.stop.aborted) return 0
    throw error
  } finally {
    clearTimeout(silence)
    silent.abort()
  }
}

function queryOf({ device, topic, source }: TapOptions): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ device, topic, source }))
    if (value !== undefined) query.set(name, value)
  return query.toString()
}

function parseLine(url: string, text: string): TapLine {
  try {
    const line: unknown = JSON.parse(text)
    if (typeof line === 'object' && line !== null && 'kind' in line && typeof line.kind === 'string')
      return line as TapLine
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw daemonUnreachable(url, 'The program at this address is not a telemetry gateway')
}

function textOf(line: TapLine): string {
  const { kind, at = '', payloads = [], morePayloads = 0 } = line
  if (kind === 'dropped') return `(${plural(line.count ?? 0, 'more message')} not shown)\n\n`
  const time = zonedTime(at)
    .slice(11)
    .replace(' ', `.${at.slice(20, 23)} `)
  const lines = kind === 'closed' ? [`${time}  made from earlier messages`] : messageLines(time, line)
  for (const payload of payloads) lines.push(`    ${visible(JSON.stringify(payload))}`)
  if (morePayloads > 0) lines.push(`    and ${morePayloads} more`)
  return `${lines.join('\n')}\n\n`
}

function messageLines(time: string, line: TapLine): string[] {
  const { topic = '', qos = 0, client = '', user, certificate, identity } = line
  const { message, hex = '', cutBytes = 0 } = line
  const about = [
    `QoS ${qos}`,
    ...(line.retain ? ['retained'] : []),
    ...(line.dup ? ['DUP'] : []),
    ...(client === '' ? [] : [`client ${client}`]),
    ...(user ? [`user ${user}`] : []),
    ...(certificate ? [`certificate ${certificate}`] : []),
    ...(identity ? [`identity ${identity}`] : []),
  ]
  const content = bounded(message ?? `hex ${hex}`, shownLengthMax)
  const properties = namedProperties(line).map(([name, value]) => `${name} ${value}`)
  const { result: kind = '', payloads = [], reason = '', detail = '', rest } = line
  const result = mapResultText({ kind, payloads, reason, detail, rest })
  return [
    visible(`${time}  ${topic}  (${about.join(', ')})`),
    ...(properties.length === 0 ? [] : [`  ${visible(bounded(properties.join(', '), shownLengthMax))}`]),
    `  ${visible(content)}${cutBytes > 0 ? ` and ${cutBytes} more bytes` : ''}`,
    `  ${visible(`source ${line.source ?? 'none'}: ${result}`)}`,
  ]
}
