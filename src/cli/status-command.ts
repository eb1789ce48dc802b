// status-command.ts: `status`: the verdict and the state of the running daemon, as text or as its JSON. It
// exits with 1 unless the verdict is ok.

import { Command } from 'commander'
import { deviceStateNames, noDevices, stateKey } from '../domain/device-state.ts'
import { pause, systemClock, zonedTime } from '../std/clock.ts'
import { formatDuration, formatSize, plural } from '../std/quantity.ts'
import { visible } from '../std/quote.ts'
import {
  laneTable,
  linesOfBlocks,
  offsetText,
  providerTable,
  stateCountsText,
  type Status,
} from '../ops/ops.ts'
import { daemonUnreachable, requestDaemon } from './daemon-client/daemon-client.ts'
import { withDaemonOptions, type DaemonOptions } from './daemon-client/daemon-options.ts'
import { findDaemon } from './daemon-client/find-daemon.ts'
import { isUnreachable } from './daemon-client/spool-access.ts'
import { reportError } from './terminal/error-report.ts'
import { duration } from './terminal/option-values.ts'
import {
  clearScreen,
  printAnswer,
  terminalWidth,
  type BuildCommand,
  type CommandIo,
  type ExitStatus,
} from './terminal/terminal.ts'
import { notes } from './terminal/text-format.ts'
import { agoSince, textOfLines } from '../std/text-table/text-lines.ts'
import { foldLine } from './terminal/live-output.ts'

/** Names of partitions in a line. */
const namesMax = 8
const timeoutMs = 5000
const watchMs = 2000

type StatusOptions = DaemonOptions & { watch?: number | true }

export const statusCommand: BuildCommand = (io, done) =>
  withDaemonOptions(new Command('status'))
    .option('--watch [interval]', 'show it again and again, every 2s, until Ctrl-C', duration(500, 3_600_000))
    .addHelpText('after', notes('Exit status 1: the verdict, with --watch the last one, is not ok.'))
    .action(async (options: StatusOptions) => {
      const { watch } = options
      if (watch === undefined) return done(await show(options, io))
      done(await watchStatus(options, io, watch === true ? watchMs : watch))
    })

/** `before`: what to write first; clearScreen for a text that must fit the screen. */
async function show(options: StatusOptions, io: CommandIo, before = ''): Promise<ExitStatus> {
  const daemon = await findDaemon(options, io)
  const answer = await requestDaemon({ daemon, path: '/status', method: 'GET', stop: io.stop, timeoutMs })
  if (!isStatus(answer)) throw daemonUnreachable(daemon.url, 'What answers there is not a telemetry gateway')
  if (!options.json) io.stdout.write(before)
  printAnswer(
    io,
    options,
    answer,
    before === clearScreen ? screenText(rowsOf(io.stdout as { rows?: number })) : statusText,
  )
  return answer.verdict === 'ok' ? 0 : 1
}

/** Ends at a stop. A daemon that does not answer is shown and asked again: it may be starting. */
async function watchStatus(options: StatusOptions, io: CommandIo, everyMs: number): Promise<ExitStatus> {
  const { json = false } = options
  io.endWithReader()
  // A terminal is drawn anew; a file or a pipe gets one status behind the other.
  const isDrawn = Number.isFinite(terminalWidth(io.stdout)) && io.env['TERM'] !== 'dumb'
  const before = isDrawn ? clearScreen : '\n'
  let status: ExitStatus = 1
  let isFirst = true
  // The timers of the clock do not keep the process alive.
  const alive = setInterval(() => undefined, 2 ** 30)
  try {
    do {
      try {
        status = await show(options, io, isFirst && before === '\n' ? '' : before)
      } catch (error) {
        if (io.stop.aborted) break
        if (!isUnreachable(error)) throw error
        status = 1
        if (!json && before === clearScreen) io.stdout.write(before)
        reportError(error, json ? io.stderr : io.stdout, { json, env: io.env })
      }
      isFirst = false
    } while (await pause(systemClock, everyMs, io.stop))
  } finally {
    clearInterval(alive)
  }
  return status
}

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

function statusText(status: Status, width: number): string {
  return textOfLines(statusLines(status, width, problemLines(status)))
}

/** Of a screen that is not high enough, each problem takes less and less of it. */
function screenText(rows: number) {
  return (status: Status, columns: number): string => {
    const forms = [problemLines(status), problemHeads(status), problemRows(status, columns)]
    const lines = forms.map((problems) => statusLines(status, columns - 1, problems).map(visible))
    const [sentence = '', ...others] = lines.at(-1) ?? []
    lines.push([inRows(sentence, columns, 2), ...others])
    return textOfLines(screenful(lines, { columns, rows }, 'telemetry-gateway status'))
  }
}

/** Problems first. */
function statusLines(status: Status, width: number, problems: readonly string[]): string[] {
  const { totals, spool, waiting } = status
  const ago = agoOf(status)
  const state = status.ready ? 'ready' : `not ready (${status.notReady ?? 'unknown'})`
  return [
    `${status.verdict.toUpperCase().replace('_', ' ')}: ${status.sentence}`,
    `telemetry gateway ${status.version}, ${state}, started ${ago(status.startedAt)}, pid ${status.pid}`,
    '',
    ...problems,
    ...linesOfBlocks([providerTable(status)], width),
    '',
    ...linesOfBlocks([laneTable(status)], width),
    '',
    ...bridgeLines(status),
    ...(totals.sinceAt > status.startedAt
      ? [`counted    since the spool was lost, ${ago(totals.sinceAt)}`]
      : []),
    `messages   ${totals.messages} received, ${totals.acked} acknowledged, ${totals.ignored} ignored, ` +
      `${totals.unmappable} unmappable, ${totals.dropped} dropped`,
    `kept       ${spool.quarantined} in quarantine, ${spool.deferred} waiting for their expression, ` +
      `${waiting.openMessages} in open records`,
    `payloads   ${totals.payloads} stored, ${plural(totals.duplicates, 'duplicate')}, ` +
      `${totals.delivered} delivered, ${totals.retried} retried, ${totals.dead} given up`,
    `devices    ${devicesText(status.devices)}`,
    `clock      ${clockText(status.clock)}`,
    `spool      ${formatSize(spool.bytes)}` +
      (spool.bytesMax === null ? '' : ` of ${formatSize(spool.bytesMax)}`) +
      `, ${plural(spool.deadLetters, 'dead letter')}` +
      fullText(spool) +
      (spool.hold === null ? '' : `, accepts nothing: ${spool.hold}`),
  ]
}

function fullText({ secondsToFull, fullFirst, hold }: Status['spool']): string {
  if (secondsToFull === null || hold !== null) return ''
  return `, the ${fullFirst ?? 'spool'} is full in about ${formatDuration(secondsToFull * 1000)}`
}

const agoOf = (status: Status) => (at: string | null) =>
  at === null ? 'never' : agoSince(at, Date.parse(status.now))

type Condition = Status['conditions'][number]

function problemLines(status: Status): string[] {
  return status.conditions.flatMap((condition) => [
    headOf(status, condition),
    ...[condition.what, condition.why, condition.act].flatMap((text) => indented(text)),
    ...knownLines(condition),
    '',
  ])
}

/** A daemon of an earlier version says nothing of it. */
function knownLines({ known }: Partial<Pick<Condition, 'known'>>): string[] {
  const isKnown = known !== undefined && known !== null
  return isKnown ? indented(`Known until ${zonedTime(known.untilAt)}: ${known.by}.`) : []
}

/** Without causes and cures. */
function problemHeads(status: Status): string[] {
  const all = status.conditions.flatMap((one) => [headOf(status, one), ...indented(one.what)])
  return all.length === 0 ? [] : [...all, '']
}

/** A row for each. */
function problemRows(status: Status, columnsMax: number): string[] {
  const all = status.conditions.map(({ severity, code, key, what }) =>
    inRows(
      visible(`${severity.toUpperCase()} ${code}${key === null ? '' : ` [${key}]`}: ${what}`),
      columnsMax,
      1,
    ),
  )
  return all.length === 0 ? [] : [...all, '']
}

function headOf(status: Status, { severity, code, key, since, lastAt, count }: Condition): string {
  const times = count > 1 ? `, ${count} times, last ${agoOf(status)(lastAt)}` : ''
  return `${severity.toUpperCase()} ${code}${key === null ? '' : ` [${key}]`}, began ${agoOf(status)(since)}${times}`
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`)
}

/** One line for each connection of a bridge, and one for the partitions that gateways share. */
function bridgeLines(status: Status): string[] {
  const ago = agoOf(status)
  return status.messageSources.flatMap(
    ({ name, url, messages, outstanding, connections, partitions, lag }) =>
      connections.length === 0
        ? []
        : [
            `bridge     ${name}, ${url ?? ''}: ${plural(messages, 'message')}, ${outstanding} not acknowledged yet`,
            ...connections.map(
              ({ clientId, state, since, lastFault }) =>
                `           ${clientId}: ${state} ${ago(since)}` +
                (lastFault === null ? '' : `, ${lastFault}`),
            ),
            ...(partitions.length === 0 ? [] : [`           ${partitionsText(partitions, lag)}`]),
          ],
  )
}

/** Whether this gateway takes a partition is not always known: RabbitMQ does not say it. */
function partitionsText(
  partitions: Status['messageSources'][number]['partitions'],
  lag: number | null,
): string {
  const active = partitions.filter(({ role }) => role === 'active').map(({ partition }) => partition)
  const names = active.length === 0 ? '' : ` (${namesText(active)})`
  const waiting = lag === null ? '' : `, ${plural(lag, 'message')} waiting there`
  return `partitions: ${active.length} of ${partitions.length} active here${names}${waiting}`
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, namesMax).join(', ')
  return names.length > namesMax ? `${shown} and ${names.length - namesMax} more` : shown
}

/** In the words and the order of `devices`. A daemon of an earlier version does not count all of them. */
function devicesText(devices: Status['devices']): string {
  const { known } = devices
  const numbers: Partial<typeof devices> = devices
  const { total = known } = numbers
  const counts = noDevices()
  for (const state of deviceStateNames) counts[state] = numbers[stateKey(state)] ?? 0
  return `${total === 0 ? 'none' : total}${stateCountsText(counts, total === 0 ? '' : ': ')}`
}

function clockText({ by, offsetMs, isDisputed }: Status['clock']): string {
  if (by === null) return 'the time is not known, device times are not checked'
  if (isDisputed) return 'the service and this machine differ by more than a minute'
  const sources = {
    kernel: 'the operating system',
    config: 'clocks.trust_local',
    devices: 'the devices',
    service: 'the service',
  }
  return `known by ${sources[by]}${by === 'service' ? `, offset ${offsetText(offsetMs)}` : ''}`
}

// A text that is drawn again and again, made to fit the screen of a terminal: what scrolls away
// is not read. Lines are folded to the width. Where the whole text is too high, a shorter form of it is
// taken, and what even that has too much is left out at the end, with a line that says so.

type Size = { columns: number; rows: number }

/** Of a terminal that does not say its size. */
const usualRows = 24
/** One line, and the one about the others. */
const rowsMin = 3

function rowsOf({ rows = 0 }: { rows?: number }): number {
  return Math.max(rowsMin, rows > 0 ? rows : usualRows)
}

/** `forms`: the same text, each shorter than the one before. `command`: prints all of it. */
function screenful(forms: readonly (readonly string[])[], size: Size, command: string): string[] {
  // The last column stays empty, where some terminals begin a new row; the last row has the cursor.
  const rows = size.rows - 1
  const folded = forms.map((lines) => lines.flatMap((line) => foldLine(line, size.columns - 1)))
  const [whole = []] = folded
  if (whole.length <= rows) return whole
  const form = folded.find(({ length }) => length < rows) ?? folded.at(-1) ?? []
  const shown = form.slice(0, rows - 1)
  const more = whole.length - shown.length
  return [
    ...shown,
    foldLine(`${more} more line${more === 1 ? '' : 's'}: ${command}`, size.columns - 1)[0] ?? '',
  ]
}

/** What of the line fits in some rows, with "…" for the rest. */
function inRows(line: string, columns: number, rows: number): string {
  const folded = foldLine(line, columns - 2)
  return folded.length <= rows ? line : `${folded.slice(0, rows).join(' ')}…`
}
