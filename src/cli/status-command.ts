// status-command.ts: `status`: asks the running daemon and shows its answer, to a person as tables or as its JSON.

import { Command } from 'commander'
import { GatewayError, messageOf } from '../std/gateway-error.ts'
import { formatDuration, formatSize } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import { opsUrl } from '../ops/config.ts'
import type { Status } from '../ops/ops.ts'
import { boundedText } from './daemon-client.ts'
import type { CommandIo, ExitStatus } from './terminal/terminal.ts'
import { columns } from './terminal/text-table.ts'

const answerMs = 5000
/** A status has a few hundred lines at most; more is not ours. */
const answerBytesMax = 8 * 1024 * 1024

type StatusOptions = { config?: string; url?: string; json?: boolean }

export function statusCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('status')
    .description('what the running daemon says about itself')
    .option('--config <file>', 'take the address from ops.listen of this config')
    .option('--url <url>', 'base URL of the daemon (default: http://127.0.0.1:8080)')
    .option('--json', 'the answer as it came')
    .action(async (options: StatusOptions) => {
      const url = await daemonUrl(options, io)
      const status = await askStatus(url, io.stop)
      io.stdout.write(options.json ? `${JSON.stringify(status)}\n` : statusText(status))
      done(0)
    })
}

/** Where the daemon answers: --url, or ops.listen of --config, or the default. */
export async function daemonUrl(
  { config, url }: Pick<StatusOptions, 'config' | 'url'>,
  { env }: Pick<CommandIo, 'env'>,
): Promise<string> {
  if (url !== undefined && config !== undefined) {
    throw new GatewayError('USAGE', {
      what: 'Both --url and --config are given.',
      why: 'Each of them names the daemon to ask.',
      act: 'Give one of them.',
    })
  }
  if (url !== undefined) {
    if (/^https?:\/\//.test(url) && URL.canParse(url)) return url.replace(/\/+$/, '')
    throw new GatewayError('USAGE', {
      what: `--url is no http:// or https:// URL: ${JSON.stringify(url)}.`,
      why: 'The daemon is asked over HTTP.',
      act: 'Write it as http://127.0.0.1:8080.',
    })
  }
  if (config !== undefined) {
    // Loaded only here: it brings the schema of every stage along.
    const { loadOpsConfig } = await import('../config/config.ts')
    return opsUrl((await loadOpsConfig(config, { env })).listen)
  }
  return 'http://127.0.0.1:8080'
}

async function askStatus(url: string, stop: AbortSignal): Promise<Status> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(answerMs)])
  let answer: unknown
  try {
    const response = await fetch(`${url}/status`, { signal, redirect: 'error' })
    if (!response.ok) throw new Error(`it answered with HTTP status ${response.status}`)
    answer = JSON.parse(await boundedText(response, answerBytesMax))
  } catch (error) {
    throw unreachable(
      url,
      error instanceof SyntaxError ? 'what answers there sends no JSON' : messageOf(error),
      error,
    )
  }
  if (!isStatus(answer)) throw unreachable(url, 'what answers there is no telemetry gateway', undefined)
  return answer
}

function isStatus(value: unknown): value is Status {
  if (typeof value !== 'object' || value === null) return false
  const lists = ['providers', 'lanes', 'conditions'] as const
  return (
    'version' in value &&
    'totals' in value &&
    'spool' in value &&
    lists.every((key) => Array.isArray((value as Record<string, unknown>)[key]))
  )
}

function unreachable(url: string, why: string, cause: unknown): GatewayError {
  return new GatewayError('DAEMON_UNREACHABLE', {
    what: `The daemon does not answer at ${url}/status.`,
    why: `${why}.`,
    act: 'Check `systemctl status telemetry-gateway`; where ops.listen is not the default, give --config or --url.',
    cause,
  })
}

/** For a person: the worst first. */
function statusText(status: Status): string {
  const { totals, spool } = status
  const since = (at: string) => formatDuration(Math.max(0, Date.parse(status.now) - Date.parse(at)))
  const ago = (at: string | null) => (at === null ? 'never' : `${since(at)} ago`)
  const state = status.ready ? 'ready' : `not ready (${status.notReady ?? 'unknown'})`
  const lines = [
    `telemetry gateway ${status.version}, ${state}, started ${ago(status.startedAt)}, pid ${status.pid}`,
    '',
  ]
  for (const { severity, code, key, since: from, count, what, why, act } of status.conditions) {
    const times = count > 1 ? `, ${count} times` : ''
    lines.push(
      `${severity.toUpperCase()} ${code}${key === null ? '' : ` [${key}]`} since ${since(from)}${times}`,
    )
    for (const text of [what, why, act]) lines.push(...text.split('\n').map((one) => `  ${one}`))
    lines.push('')
  }
  if (status.conditions.length === 0) lines.push('No conditions: all is well.', '')
  lines.push(
    ...columns([
      ['provider', 'endpoint', 'since', 'last accepted', 'rate/s', 'in flight', 'clock'],
      ...status.providers.map((provider) => [
        provider.name,
        provider.endpoint,
        ago(provider.since),
        ago(provider.lastAcceptedAt),
        provider.ratePerS.toFixed(1),
        String(provider.inFlight),
        provider.clockOffsetMs === null
          ? 'unknown'
          : `${provider.clockOffsetMs > 0 ? '+' : ''}${provider.clockOffsetMs}ms`,
      ]),
    ]),
    '',
    ...columns([
      ['lane', 'provider', 'urgency', 'pending', 'sealed', 'bytes', 'oldest', 'drained in'],
      ...status.lanes.map((lane) => [
        String(lane.id),
        lane.provider,
        lane.urgency,
        String(lane.pending),
        String(lane.sealed),
        formatSize(lane.bytes),
        lane.oldestAt === null ? '-' : ago(lane.oldestAt),
        lane.secondsToDrain === null ? 'unknown' : formatDuration(lane.secondsToDrain * 1000),
      ]),
    ]),
    '',
    `messages   ${totals.messages} received, ${totals.acked} acked, ${totals.ignored} ignored, ${totals.dropped} dropped`,
    `kept       ${spool.quarantined} in quarantine, ${spool.deferred} before their expression, ${totals.openParts} in open records`,
    `payloads   ${totals.payloads} taken in, ${totals.duplicates} duplicates, ${totals.delivered} delivered, ${totals.retried} retried, ${totals.dead} dead`,
    `spool      ${formatSize(spool.bytes)}${spool.bytesMax === null ? '' : ` of ${formatSize(spool.bytesMax)}`}, ${spool.deadLetters} dead letters${spool.hold === null ? '' : `, takes nothing in: ${spool.hold}`}`,
  )
  return `${lines.map(visible).join('\n')}\n`
}
