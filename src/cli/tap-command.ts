// tap-command.ts: `tap`: messages of the running daemon as they come, raw and mapped, until --count or a signal.

import { Command, InvalidArgumentError } from 'commander'
import { GatewayError, messageOf } from '../std/gateway-error.ts'
import { bounded, visible } from '../std/quote.ts'
import { mapResultText } from './terminal/result-text.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { daemonUrl } from './status-command.ts'

type TapOptions = {
  config?: string
  url?: string
  device?: string
  topic?: string
  source?: string
  count?: number
  json?: boolean
}

/** A line of the daemon (ops/http/tap-stream.ts); what it does not have is undefined. */
type TapLine = {
  kind: string
  at?: number
  topic?: string
  qos?: number
  retain?: boolean
  dup?: boolean
  client?: string
  user?: string | null
  certificate?: string | null
  message?: string
  hex?: string
  cutBytes?: number
  source?: string | null
  became?: string
  payloads?: unknown[]
  morePayloads?: number
  reason?: string
  detail?: string
  count?: number
}

/** The daemon answers at once and then says every few seconds that it is there. */
const silenceMaxMs = 20_000
/** A line holds one message of at most 64 KiB and its payloads; more is not ours. */
const lineLengthMax = 16 * 1024 * 1024
const shownLengthMax = 2000

export function tapCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('tap')
    .description('messages of the running daemon as they come, raw and mapped')
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--device <name>', 'only messages about this device')
    .option('--topic <filter>', 'only messages on topics that match, such as telemetry/v1/+/data')
    .option('--source <name>', 'only messages that this source reads')
    .option('--count <number>', 'end after so many messages', whole)
    .option('--json', 'a line of JSON for each message')
    .addHelpText(
      'after',
      '\nAt most 100 messages a second are shown; how many were not is said. The daemon serves four taps at once and' +
        '\nis not slowed by them. What a client is called is shown, passwords never. Ctrl-C ends it.',
    )
    .action(async (options: TapOptions) => done(await tap(options, io)))
}

async function tap(options: TapOptions, io: CommandIo): Promise<ExitStatus> {
  const url = `${await daemonUrl(options, io)}/tap?${queryOf(options)}`
  const end = new AbortController()
  const silence = setTimeout(() => end.abort(new Error('it fell silent')), silenceMaxMs)
  try {
    const response = await fetch(url, { signal: AbortSignal.any([io.stop, end.signal]), redirect: 'error' })
    if (!response.ok || response.body === null) throw await refusal(url, response)
    let left = options.count ?? Number.POSITIVE_INFINITY
    for await (const text of linesIn(response.body)) {
      silence.refresh()
      const line = lineFrom(text)
      if (line.kind === 'alive') continue
      await write(io, options.json ? `${text}\n` : textOf(line))
      if (line.kind === 'message') left -= 1
      if (left === 0) return 0
    }
    throw new Error('it ended the stream, as it does when it stops')
  } catch (error) {
    if (io.stop.aborted) return 0
    if (error instanceof GatewayError) throw error
    throw unreachable(url, error)
  } finally {
    clearTimeout(silence)
    end.abort()
  }
}

function queryOf({ device, topic, source }: TapOptions): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries({ device, topic, source }))
    if (value !== undefined) query.set(name, value)
  return query.toString()
}

async function refusal(url: string, response: Response): Promise<Error> {
  const text = bounded(await response.text(), 2000)
  try {
    const { what, why, act } = JSON.parse(text) as { what?: unknown; why?: unknown; act?: unknown }
    if (typeof what === 'string' && typeof why === 'string' && typeof act === 'string')
      return new GatewayError(response.status === 400 ? 'USAGE' : 'DAEMON_UNREACHABLE', { what, why, act })
  } catch (error) {
    return unreachable(url, new Error(`it answered with HTTP status ${response.status}`, { cause: error }))
  }
  return unreachable(url, new Error(`it answered with HTTP status ${response.status}`))
}

function unreachable(url: string, cause: unknown): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon does not show its messages at ${url.split('?', 1)[0] ?? url}.`,
    why: `${messageOf(cause)}.`,
    act: 'Check `systemctl status telemetry-gateway`; where ops.listen is not the default, give --config or --url.',
    cause,
  })
}

async function* linesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > lineLengthMax) throw new Error('a line of it has no end')
    yield* lines
  }
}

function lineFrom(text: string): TapLine {
  const line: unknown = JSON.parse(text)
  if (typeof line === 'object' && line !== null && 'kind' in line && typeof line.kind === 'string')
    return line as TapLine
  throw new Error('what answers there is no telemetry gateway')
}

/** For a person: who sent what where, and what became of it. */
function textOf(line: TapLine): string {
  const { kind, at = 0, payloads = [], morePayloads = 0 } = line
  if (kind === 'dropped') return `(${line.count ?? 0} more came than are shown)\n\n`
  const time = new Date(at).toISOString().slice(11, 23)
  const lines = kind === 'closed' ? [`${time}  made of messages that waited`] : messageLines(time, line)
  for (const payload of payloads) lines.push(`    ${visible(JSON.stringify(payload))}`)
  if (morePayloads > 0) lines.push(`    and ${morePayloads} more`)
  return `${lines.join('\n')}\n\n`
}

function messageLines(time: string, line: TapLine): string[] {
  const { topic = '', qos = 0, client = '', user, certificate, message, hex = '', cutBytes = 0 } = line
  const flags = [`QoS ${qos}`, ...(line.retain ? ['retained'] : []), ...(line.dup ? ['DUP'] : [])]
  const names = [
    `client ${client}`,
    ...(user ? [`user ${user}`] : []),
    ...(certificate ? [`certificate ${certificate}`] : []),
  ]
  const content = bounded(message ?? `hex ${hex}`, shownLengthMax)
  const cut = cutBytes > 0 ? ` and ${cutBytes} bytes more` : ''
  const { became: kind = '', payloads = [], reason = '', detail = '' } = line
  const became = mapResultText({ kind, payloads, reason, detail })
  return [
    visible(`${time}  ${topic}  (${[...flags, ...names].join(', ')})`),
    `  ${visible(content)}${cut}`,
    `  ${visible(`source ${line.source ?? 'none'}: ${became}`)}`,
  ]
}

async function write({ stdout }: CommandIo, text: string): Promise<void> {
  if (stdout.write(text)) return
  await new Promise<void>((resolve) => {
    stdout.once('drain', resolve)
  })
}

function whole(text: string): number {
  if (/^\d{1,15}$/.test(text) && Number(text) >= 1) return Number(text)
  throw new InvalidArgumentError('It must be a whole number from 1 on.')
}
