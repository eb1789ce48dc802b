// dead-letter-text.ts: dead letters by cause, one of them whole, and what became of messages that were mapped
// again, for a person.

import { zonedTime } from '../../std/clock.ts'
import type { z } from 'zod'
import { formatSize, plural } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import { agoSince, countLines } from '../../std/text-table/text-lines.ts'
import { namedProperties } from '../../domain/message.ts'
import type { deadLettersSchema } from '../http/answer-schemas/answer-schemas.ts'
import type { deadLetterSchema } from '../http/answer-schemas/control-schemas.ts'
import { isGiven, type Shown } from './operation.ts'
import type { Block, Cell, ShownTable } from './shown-block.ts'

type Whole = z.output<typeof deadLetterSchema>['deadLetter']

type Listed = z.output<typeof deadLettersSchema>

export function deadLettersText(
  { scanned, more, groups, deadLetters }: Listed,
  { now, values, prints }: Shown<{ limit?: number }>,
): Block[] {
  const { limit: _limit, ...filter } = values
  const isFiltered = Object.values(filter).some(isGiven)
  if (scanned === 0) return [isFiltered ? 'No dead letter matches.' : 'There are no dead letters.']
  const rows = groups.map((group) => groupRow(group, now))
  return [
    {
      caption: 'by cause, the most frequent first',
      head: [
        '*dead letters',
        'cause',
        'stage',
        'reason',
        'from',
        '*devices',
        'oldest',
        'latest',
        'latest detail',
      ],
      rows,
    },
    ...(prints.has('ids') ? [deadLetterTable(deadLetters, now)] : []),
    ...(more
      ? ['', `Only the oldest ${plural(scanned, 'dead letter')} ${scanned === 1 ? 'is' : 'are'} included.`]
      : []),
  ]
}

function groupRow(group: Listed['groups'][number], now: number): Cell[] {
  const { stage, reason, source, provider, fields, count, devices, oldestAt, latestAt, detail } = group
  const which = Object.entries({ stage, reason, source, provider }).flatMap(([name, value]) =>
    value === null ? [] : [[name, value] as const],
  )
  return [
    plural(count, stage === 'delivery' ? 'payload' : 'message'),
    { text: fields ?? reason, to: ['/page/dead-letters', Object.fromEntries(which)] },
    stage,
    reason,
    source ?? provider ?? '-',
    devices >= 1000 ? '1,000 or more' : String(devices),
    { text: agoSince(oldestAt, now), at: oldestAt },
    { text: agoSince(latestAt, now), at: latestAt },
    detail,
  ]
}

export function deadLetterTable(letters: Listed['deadLetters'], now: number): ShownTable {
  const rows = letters.map(
    ({ id, at, stage, reason, detail, device, topic, payloadId }) =>
      [
        { text: id, to: ['/page/dead-letter', { id }] },
        { text: `${zonedTime(at)}, ${agoSince(at, now)}`, at },
        stage,
        reason,
        device === null ? '-' : { text: device, to: ['/page/device', { key: device }] },
        topic ?? payloadId ?? '-',
        detail,
      ] satisfies Cell[],
  )
  const head = ['id', 'given up', 'stage', 'reason', 'device', 'topic or payload', 'detail']
  return { caption: 'one by one, the oldest first', head, rows }
}

function devicesText({ devices = [], moreDevices = 0 }: Whole): string | null {
  if (devices.length === 0) return null
  return devices.join(', ') + (moreDevices > 0 ? ` and ${moreDevices} more` : '')
}

export function deadLetterText(
  { id, deadLetter }: z.output<typeof deadLetterSchema>,
  { prints }: Shown<unknown>,
): Block[] {
  const hex = prints.has('hex')
  const { stage, reason, detail, at, provider, device, payloadId, batchId, requestId, failure, payload } =
    deadLetter
  const facts: [string, Cell | null][] = [
    ['dead letter', id],
    ['stage', stage],
    ['reason', reason],
    ['detail', detail],
    ['since', zonedTime(at)],
    ['provider', provider],
    ['device', device === null ? null : { text: device, to: ['/page/device', { key: device }] }],
    ['devices', devicesText(deadLetter)],
    ['payloadId', payloadId && { text: payloadId, to: ['/page/ledger', { payload: payloadId }] }],
    ['batchId', batchId],
    ['requestId', requestId && { text: requestId, to: ['/page/ledger', { request: requestId }] }],
    ['error type', failure?.errorType ?? null],
    ['error message', failure?.errorMessage ?? null],
    ...envelopeRows(deadLetter),
  ]
  const fields = failure?.validationErrorDetails ?? []
  const refused = {
    caption: 'fields that the service refused',
    head: ['field', 'message'],
    rows: fields.map(({ field, message }) => [field, message]),
  }
  return [
    { facts },
    ...(fields.length === 0 ? [] : [refused]),
    ...messageBlocks(deadLetter, hex),
    ...(payload === null ? [] : [{ title: 'payload', lines: linesOf(JSON.stringify(payload, null, 2)) }]),
  ]
}

function envelopeRows({ envelope }: Whole): [string, string | null][] {
  if (envelope === null) return []
  const { source, topic, qos, retain, dup, arrivedAt } = envelope
  const { clientId, userName, certificateName, identity = null, address = null } = envelope
  const flags = [`QoS ${qos}`, ...(retain ? ['retained'] : []), ...(dup ? ['DUP'] : [])].join(', ')
  return [
    ['source', source],
    ['topic', topic],
    ['client', clientId],
    ['user', userName],
    ['certificate', certificateName],
    ['identity', identity],
    ['address', address],
    ['arrived', `${zonedTime(arrivedAt)}, ${flags}`],
    ...namedProperties(envelope).map(([name, value]): [string, string] => [visible(name), value]),
  ]
}

function messageBlocks({ envelope }: Whole, hex: boolean): Block[] {
  if (envelope === null) return []
  const bytes = Buffer.from(envelope.bytes, 'base64')
  const text = hex ? null : textIn(bytes)
  const title = `message, ${formatSize(bytes.length)}${text === null ? ', in hexadecimal' : ''}`
  return [{ title, lines: text === null ? hexLines(bytes) : linesOf(text) }]
}

/** Null where the bytes are not printable UTF-8. */
function textIn(bytes: Buffer): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return /[^\P{Cc}\t\n\r]/u.test(text) ? null : text
  } catch {
    return null
  }
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/).map((line) => visible(line.replaceAll('\t', '  ')))
}

const rowBytes = 16

function hexLines(bytes: Buffer): string[] {
  const lines: string[] = []
  for (let start = 0; start < bytes.length; start += rowBytes) {
    const row = bytes.subarray(start, start + rowBytes)
    const digits = [...row].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const characters = [...row]
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${start.toString(16).padStart(6, '0')}  ${digits.padEnd(rowBytes * 3)} ${characters}`)
  }
  return lines
}

// The result of mapping messages again, for `remap`, `requeue` and `release`.

type Remapped = {
  /** Messages that were mapped again. */
  deadLetters: number
  payloads: number
  duplicates: number
  ignored: Record<string, number>
  kept: number
  stillRefused: Record<string, number>
}

export function duplicatesLines(duplicates: number): string[] {
  if (duplicates === 0) return []
  return [`  ${plural(duplicates, 'payload')} left out: the same reading came in another message`]
}

/** The sum of several reports. */
export function remapLines(reports: readonly Remapped[], dryRun: boolean): string[] {
  if (reports.length === 0) return []
  const messages = plural(sumOf(reports.map(({ deadLetters }) => deadLetters)), 'message')
  const payloads = plural(sumOf(reports.map((report) => report.payloads)), 'payload')
  const kept = sumOf(reports.map((report) => report.kept))
  return [
    dryRun ? `${messages} would map to ${payloads}.` : `${messages} mapped to ${payloads}.`,
    ...duplicatesLines(sumOf(reports.map(({ duplicates }) => duplicates))),
    ...countLines(totals(reports.map(({ ignored }) => ignored)), (count, why) => `${count} ignored: ${why}`),
    ...(kept > 0 ? [`  ${kept} kept for their device, their clock or their expression`] : []),
    ...countLines(
      totals(reports.map(({ stillRefused }) => stillRefused)),
      (count, why) => `${count} cannot be mapped: ${why}`,
    ),
  ]
}

export function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}

function totals(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const record of records)
    for (const [key, count] of Object.entries(record)) sums[key] = (sums[key] ?? 0) + count
  return sums
}
