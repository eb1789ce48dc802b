// status-command.ts: `status`: the verdict and the state of the running daemon, as text or as its JSON. It
// exits with 1 unless the verdict is ok.

import { Command } from 'commander'
import { formatDuration, formatSize, plural } from '../std/quantity.ts'
import type { Status } from '../ops/ops.ts'
import { daemonUnreachable, requestDaemon } from './daemon-client/daemon-client.ts'
import { withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { findDaemon } from './daemon-client/find-daemon.ts'
import { columns } from './terminal/text-table.ts'
import { printAnswer, type BuildCommand } from './terminal/terminal.ts'
import { agoText, textOfLines } from './terminal/text-format.ts'

const timeoutMs = 5000

export const statusCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('status')).action(async (options: DaemonOptions) => {
    const daemon = await findDaemon(options, io)
    const answer = await requestDaemon({ daemon, path: '/status', method: 'GET', stop: io.stop, timeoutMs })
    if (!isStatus(answer))
      throw daemonUnreachable(daemon.url, 'What answers there is not a telemetry gateway')
    printAnswer(io, options, answer, statusText)
    done(answer.verdict === 'ok' ? 0 : 1)
  })

function isStatus(value: unknown): value is Status {
  if (typeof value !== 'object' || value === null) return false
  const lists = ['providers', 'lanes', 'conditions'] as const
  return (
    'version' in value &&
    'verdict' in value &&
    'totals' in value &&
    'spool' in value &&
    lists.every((key) => Array.isArray((value as Record<string, unknown>)[key]))
  )
}

/** Problems first. */
function statusText(status: Status): string {
  const { totals, spool } = status
  const ago = agoOf(status)
  const state = status.ready ? 'ready' : `not ready (${status.notReady ?? 'unknown'})`
  return textOfLines([
    `${status.verdict.toUpperCase().replace('_', ' ')}: ${status.sentence}`,
    `telemetry gateway ${status.version}, ${state}, started ${ago(status.startedAt)}, pid ${status.pid}`,
    '',
    ...problemLines(status),
    ...providerTable(status),
    '',
    ...laneTable(status),
    '',
    `messages   ${totals.messages} received, ${totals.acked} acknowledged, ${totals.ignored} ignored, ` +
      `${totals.dropped} dropped`,
    `kept       ${spool.quarantined} in quarantine, ${spool.deferred} waiting for their expression, ` +
      `${totals.openParts} in open records`,
    `payloads   ${totals.payloads} stored, ${plural(totals.duplicates, 'duplicate')}, ` +
      `${totals.delivered} delivered, ${totals.retried} retried, ${totals.dead} dead`,
    `clock      ${clockText(status.clock)}`,
    `spool      ${formatSize(spool.bytes)}` +
      (spool.bytesMax === null ? '' : ` of ${formatSize(spool.bytesMax)}`) +
      `, ${plural(spool.deadLetters, 'dead letter')}` +
      (spool.hold === null ? '' : `, accepts nothing: ${spool.hold}`),
  ])
}

const agoOf = (status: Status) => (at: string | null) =>
  at === null ? 'never' : agoText(Date.parse(status.now) - Date.parse(at))

function problemLines(status: Status): string[] {
  const ago = agoOf(status)
  return status.conditions.flatMap(({ severity, code, key, since, count, what, why, act }) => [
    `${severity.toUpperCase()} ${code}${key === null ? '' : ` [${key}]`}, began ${ago(since)}` +
      (count > 1 ? `, ${count} times` : ''),
    ...[what, why, act].flatMap((text) => text.split('\n').map((line) => `  ${line}`)),
    '',
  ])
}

function providerTable(status: Status): string[] {
  const ago = agoOf(status)
  const rows = status.providers.map((provider) => [
    provider.name,
    provider.endpoint,
    ago(provider.since),
    ago(provider.lastAcceptedAt),
    provider.ratePerS.toFixed(1),
    String(provider.inFlight),
    offsetText(provider.clockOffsetMs),
  ])
  return columns([
    ['provider', 'endpoint', 'since', 'last accepted', 'payloads/s', 'in flight', 'clock offset'],
    ...rows,
  ])
}

function clockText({ by, offsetMs, isDisputed }: Status['clock']): string {
  if (by === null) return 'the time is not known, device times are not checked'
  if (isDisputed) return 'the service and this machine differ by more than a minute'
  const sources = { kernel: 'the operating system', config: 'clocks.trust_local', service: 'the service' }
  return `known by ${sources[by]}${by === 'service' ? `, offset ${offsetText(offsetMs)}` : ''}`
}

function offsetText(offsetMs: number | null): string {
  if (offsetMs === null) return 'unknown'
  return `${offsetMs < 0 ? '-' : '+'}${formatDuration(Math.abs(offsetMs))}`
}

function drainText(seconds: number | null): string {
  if (seconds === null) return 'unknown'
  return seconds === 0 ? '-' : formatDuration(seconds * 1000)
}

function laneTable(status: Status): string[] {
  const ago = agoOf(status)
  const rows = status.lanes.map((lane) => [
    String(lane.id),
    lane.provider,
    lane.urgency,
    String(lane.pending),
    String(lane.sealed),
    formatSize(lane.bytes),
    lane.oldestAt === null ? '-' : ago(lane.oldestAt),
    drainText(lane.secondsToDrain),
  ])
  return columns([
    ['lane', 'provider', 'urgency', 'pending', 'sealed', 'size', 'oldest', 'time to drain'],
    ...rows,
  ])
}
