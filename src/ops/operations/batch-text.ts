// batch-text.ts: batches, and what an action did with them, for a person.

import { zonedTime } from '../../std/clock.ts'
import type { z } from 'zod'
import { assertNever } from '../../std/assert.ts'
import { formatDuration, formatSize, plural } from '../../std/quantity.ts'
import { agoSince } from '../../std/text-table/text-lines.ts'
import { heldReasons, type HeldReason } from '../../domain/held.ts'
import { heldActs } from '../conditions/delivery-conditions.ts'
import type { batchSchema, batchesSchema } from '../http/answer-schemas/answer-schemas.ts'
import type { batchActionSchema } from '../http/answer-schemas/control-schemas.ts'
import { isGiven, type Shown } from './operation.ts'
import type { Block, Cell } from './shown-block.ts'

type Batches = z.output<typeof batchesSchema>
type View = Batches['batches'][number]
type Report = z.output<typeof batchActionSchema>

const head = [
  'batchId',
  'provider',
  'lane',
  '*payloads',
  '*size',
  'sealed',
  'state',
  '*sent',
  'requestId',
  'next try',
]

export function batchesText(
  { groups, batches, moreBatches }: Batches,
  { now, values }: Shown<{ id: unknown; limit: number }>,
): Block[] {
  const { id: _ids, limit: _limit, ...filter } = values
  const isFiltered = Object.values(filter).some(isGiven)
  if (batches.length === 0) return [isFiltered ? 'No sealed batch matches.' : 'There are no sealed batches.']
  const all = Object.keys(heldReasons) as HeldReason[]
  const reasons = all.filter((reason) => groups.some((group) => group.reason === reason))
  return [
    ...groups.map(
      (one) =>
        `${sizeText(one)} ${one.state}${one.reason === null ? '' : ` (${one.reason})`}, ` +
        `provider ${one.provider}, oldest ${agoSince(one.oldestAt, now)}`,
    ),
    '',
    { caption: 'sealed batches', head, rows: batches.map((view) => rowOf(view, now)) },
    ...(moreBatches > 0
      ? [`${plural(moreBatches, 'more batch', 'more batches')}. --limit shows more of them.`]
      : []),
    ...(reasons.length > 0 ? ['', ...reasons.map(reasonText)] : []),
  ]
}

function sizeText({ batches, payloads }: { batches: number; payloads: number }): string {
  return `${plural(batches, 'batch', 'batches')} with ${plural(payloads, 'payload')}`
}

function rowOf(view: View, now: number): Cell[] {
  const { batchId, provider, role, payloads, bytes, sealedAt, state, held, submissions } = view
  return [
    { text: batchId, to: ['/page/batch', { id: batchId }] },
    provider,
    role,
    String(payloads),
    formatSize(bytes),
    { text: agoSince(sealedAt, now), at: sealedAt },
    held === null ? state : `held: ${held.reason}, ${agoSince(held.since, now)}`,
    String(submissions),
    view.lastRequestId ?? '-',
    nextText(view, now),
  ]
}

function nextText({ state, nextTryAt }: View, now: number): string {
  if (state === 'in flight') return 'runs now'
  const inMs = nextTryAt === null ? 0 : Date.parse(nextTryAt) - now
  return inMs <= 0 ? 'in turn' : `in ${formatDuration(inMs)}`
}

/** What it means, and what a person can do. */
function reasonText(reason: HeldReason): string {
  return `${reason}: ${heldReasons[reason]}. ${heldActs[reason]}`
}

export function batchText(detail: z.output<typeof batchSchema>): Block[] {
  const { held, contents, answers } = detail
  const facts: [string, Cell][] = [
    ['batchId', detail.batchId],
    ['provider', detail.provider],
    ['lane', detail.role],
    ['payloads', `${detail.payloads}, ${formatSize(detail.bytes)}`],
    ['sealed', zonedTime(detail.sealedAt)],
    ['state', held === null ? detail.state : `held since ${zonedTime(held.since)}`],
    ...(held === null
      ? []
      : ([
          ['why', held.why],
          ['reason', reasonText(held.reason)],
        ] as [string, Cell][])),
    ['submissions', String(detail.submissions)],
    ['processed', detail.mayBeProcessed ? 'perhaps' : 'no: every submission was refused'],
    ['requestId', detail.lastRequestId ?? '-'],
    ['next try', detail.nextTryAt === null ? '-' : zonedTime(detail.nextTryAt)],
  ]
  const answerRows = answers.map(
    (one) =>
      [
        zonedTime(one.at),
        { text: one.requestId ?? '-', to: ['/page/ledger', { request: one.requestId ?? '' }] },
        one.text,
      ] satisfies Cell[],
  )
  const payloadRows = contents.map(
    ({ payloadId, device }) =>
      [
        { text: payloadId, to: ['/page/ledger', { payload: payloadId }] },
        device === null ? '-' : { text: device, to: ['/page/device', { key: device }] },
      ] satisfies Cell[],
  )
  return [
    { facts },
    { caption: 'last answers', head: ['when', 'requestId', 'answer'], rows: answerRows },
    { caption: 'payloads', head: ['payload', 'device'], rows: payloadRows },
  ]
}

const done: Record<Exclude<Report['action'], 'retry'>, string> = {
  reissue: 'sent under new batchIds',
  split: 'sent under new batchIds',
  'mark-delivered': 'settled as delivered, without another submission',
  drop: 'settled: the payloads become dead letters',
  discard: 'deleted. Their payloads are lost',
}

export function actionText(report: Report): string[] {
  const { action, dryRun, batches, newBatches, skipped } = report
  const made = newBatches > 0 ? ` (${plural(newBatches, 'new batch', 'new batches')})` : ''
  const verb = dryRun ? 'would be' : batches === 1 ? 'is' : 'are'
  return [
    `${sizeText(report)} ${verb} ${action === 'retry' ? retryText(report) : done[action]}${made}.`,
    ...(batches > 0 ? effectLines(report) : []),
    ...skipped.slice(0, 20).map(({ batchId, code, why }) => `  skipped: ${batchId}: ${code}: ${why}`),
    ...(skipped.length > 20 ? [`  skipped: ${skipped.length - 20} more`] : []),
  ]
}

function effectLines({ action, mayBeProcessed, payloads, batches, waiting }: Report): string[] {
  const sure = payloads - mayBeProcessed.payloads
  switch (action) {
    case 'reissue':
    case 'split':
      if (mayBeProcessed.batches === 0)
        return [
          `  The service has processed ${batches === 1 ? 'nothing of it' : 'none of them'}: it refused every submission.`,
        ]
      return [
        `  The service may have processed ${partText(mayBeProcessed.batches, batches)}. If it did, it processes ` +
          `${plural(mayBeProcessed.payloads, 'payload')} twice, under two batchIds.`,
        '  Ask the service first: `batches show` has the batchId and the requestIds.',
      ]
    case 'mark-delivered':
      if (sure === 0)
        return [
          `  If the service did not process ${batches === 1 ? 'it, its' : 'them, their'} payloads are lost.`,
        ]
      return [
        `  The service refused every submission of ${partText(batches - mayBeProcessed.batches, batches)}: ` +
          `${plural(sure, 'payload')} ${sure === 1 ? 'is' : 'are'} lost.`,
      ]
    case 'drop':
      return ['  To send them later: dead-letters requeue --reason DROPPED_BY_OPERATOR.']
    case 'retry':
      return waiting.map(waitText)
    case 'discard':
      return []
    default:
      return assertNever(action)
  }
}

function retryText({ batches, waiting }: Report): string {
  const verb = waiting.length > 0 ? 'queued for a retry' : 'retried'
  return `${verb} under the same batchId${batches > 1 ? ', one after the other' : ''}`
}

/** `part` of `all` batches, in words. */
function partText(part: number, all: number): string {
  if (all === 1) return 'the batch'
  return part === all ? `all ${all} batches` : `${part} of the ${all} batches`
}

function waitText({ provider, endpoint, nextAttemptInMs }: Report['waiting'][number]): string {
  const next =
    nextAttemptInMs > 0
      ? `The next try is in ${formatDuration(nextAttemptInMs)}; \`probe\` starts it now.`
      : 'The next try is running or starts now.'
  return `  The endpoint of provider ${provider} is ${endpoint}. Its batches wait until a try succeeds. ${next}`
}
