// quarantine-operations.ts: messages in quarantine: listed by device and reason, and decided about.

import { z } from 'zod'
import { GatewayError } from '../../std/gateway-error.ts'
import { plural } from '../../std/quantity.ts'
import { agoSince, countLines } from '../../std/text-table/text-lines.ts'
import type { StageViews } from '../types.ts'
import { quarantineSchema } from '../http/answer-schemas/answer-schemas.ts'
import { dropSchema, releaseSchema } from '../http/answer-schemas/control-schemas.ts'
import { deviceKeyOf } from '../http/device-list.ts'
import { faultAnswer, ok, starting } from '../http/json-answer.ts'
import { flag, limit, text, texts } from '../http/http-routing/parameters.ts'
import type { HttpSource } from '../http/http-routing/route.ts'
import { quarantineOf } from '../http/quarantine-view.ts'
import { operation, selectionRefused, type ControlAnswer, type Operation, type Shown } from './operation.ts'
import { duplicatesLines } from './dead-letter-text.ts'
import type { Block, Cell } from './shown-block.ts'

const which = {
  device: text('Only messages of this device.', { value: 'name' }),
  id: texts('Only these messages; `quarantine list --device` shows their ids.', {
    value: 'id',
    isVariadic: true,
  }),
  all: flag('Selects the messages of all devices.'),
}

type View = z.output<typeof quarantineSchema>
type Which = { device?: string | undefined; id: readonly string[]; all: boolean }

export const quarantineOperations: readonly Operation[] = [
  operation({
    name: 'quarantine/list',
    path: '/quarantine',
    effect: 'lists',
    summary: 'List what is in quarantine, by device and reason.',
    parameters: z.strictObject({
      device: text('Only of this device, with its messages, each with its id.', { value: 'name' }),
      limit: limit('At most this many groups and messages.'),
    }),
    means: 'The messages in quarantine.',
    schema: quarantineSchema,
    async answer({ source, values: { device = null, limit: most } }) {
      const key = device === null ? null : deviceKeyOf(source.stages, device)
      const view = await quarantineOf(source, { device: key, limit: most })
      return view === null ? starting() : ok(view)
    },
    text: (view, shown) => (shown.values.device === undefined ? groupsText : quarantinedText)(view, shown),
  }),
  operation({
    name: 'quarantine/release',
    effect: 'changes',
    idsInBody: true,
    summary: 'Map messages that are in quarantine because of their clock, as if they came now.',
    notes: [
      'Messages of an unlisted device need no release: they are mapped when the device table lists the ' +
        'device.',
      'Exit status 1: an id does not exist.',
    ],
    parameters: z.strictObject({
      ...which,
      restamp: flag('Replaces a wrong device time by the time of arrival.'),
    }),
    means: 'What was released.',
    schema: releaseSchema,
    refuses: refusalOf,
    answer: ({ source, values, signal }) =>
      decided(source, (quarantine) =>
        quarantine.release(selectionOf(values), { restamp: values.restamp }, signal),
      ),
    text: (report, { values }) => [
      `${plural(report.released, 'message')} released, ${plural(report.payloads, 'payload')} made.`,
      ...duplicatesLines(report.duplicates),
      ...countLines(report.dead, (count, reason) => `${plural(count, 'dead letter')}: ${reason}`),
      ...countLines(report.ignored, (count, reason) => `${count} ignored: ${reason}`),
      ...countLines(report.kept, (count, reason) => `${count} in quarantine again: ${reason}`),
      ...(report.releasing > 0
        ? [
            `${plural(report.releasing, 'message')} of listed devices: the gateway releases them automatically.`,
          ]
        : []),
      ...(report.unlisted > 0
        ? [
            `${plural(report.unlisted, 'message')} not released: the device table (devices.file) does not list the device.`,
          ]
        : []),
      ...missingLines(missingOf(values, foundIn(report))),
    ],
    isDone: (report, values) => missingOf(values, foundIn(report)) === 0,
  }),
  operation({
    name: 'quarantine/drop',
    effect: 'changes',
    idsInBody: true,
    summary: 'Turn messages in quarantine into dead letters.',
    notes: [
      'To undo a drop: dead-letters remap --reason DROPPED_BY_OPERATOR. To delete the messages: ' +
        'dead-letters purge.',
    ],
    parameters: z.strictObject({
      ...which,
      reason: text('Only messages that are kept for this reason, such as UNKNOWN_DEVICE.', { value: 'code' }),
      yes: flag('Does it. Without it, the answer reports what would be dropped.'),
    }),
    means: 'What was dropped, or would be.',
    schema: dropSchema,
    refuses: (values) =>
      refusalOf(values) ??
      (values.all && values.reason === undefined
        ? {
            what: 'all is given without a reason.',
            why: 'A request without a kind does not mean messages of every kind.',
            act: 'Give a reason, such as UNKNOWN_DEVICE. `quarantine list` shows the reasons.',
          }
        : null),
    answer: ({ source, values, signal }) =>
      decided(source, (quarantine) => {
        const reason = values.reason === undefined ? {} : { reason: values.reason }
        return quarantine.drop({ ...selectionOf(values), ...reason }, { dryRun: !values.yes }, signal)
      }),
    text: ({ dryRun, messages, reasons }, { values }) => [
      dryRun
        ? `${plural(messages, 'message')} would be dropped.`
        : `${plural(messages, 'message')} dropped. Reason of the dead letters: DROPPED_BY_OPERATOR.`,
      ...countLines(reasons, (count, reason) => `${count} ${reason}`),
      ...missingLines(droppedMissing(values, messages)),
    ],
    isDone: ({ messages }, values) => droppedMissing(values, messages) === 0,
  }),
]

function refusalOf({ all, id, device }: Which) {
  return selectionRefused('message', { all, id, device })
}

function selectionOf({ device, id }: Which) {
  return { device: device ?? null, ids: id }
}

async function decided(
  { stages: { quarantine } }: HttpSource,
  decision: (quarantine: NonNullable<StageViews['quarantine']>) => Promise<unknown>,
): Promise<ControlAnswer> {
  if (!quarantine) return starting()
  try {
    return ok(await decision(quarantine))
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'DAEMON_REFUSED') throw error
    return faultAnswer(422, error)
  }
}

function foundIn({ released, unlisted, releasing }: z.output<typeof releaseSchema>): number {
  return released + unlisted + releasing
}

/** With a reason, some of the ids may have another one. */
function droppedMissing(values: Which & { reason?: string | undefined }, messages: number): number {
  return values.reason === undefined ? missingOf(values, messages) : 0
}

export function missingOf({ id }: { id: readonly string[] }, found: number): number {
  return Math.max(0, new Set(id).size - found)
}

export function missingLines(missing: number): string[] {
  return missing === 0 ? [] : [`  ${plural(missing, 'id')} not found`]
}

function groupsText({ scanned, more, shelves, groups }: View, { now }: Shown<unknown>): Block[] {
  if (scanned === 0) return ['The quarantine is empty.']
  const rows = groups.map(
    (one) =>
      [
        one.device === null ? '-' : { text: one.device, to: ['/page/device', { key: one.device }] },
        one.reason,
        String(one.messages),
        { text: agoSince(one.oldestAt, now), at: one.oldestAt },
        { text: agoSince(one.latestAt, now), at: one.latestAt },
        one.detail,
      ] satisfies Cell[],
  )
  const all = shelves.reduce((sum, { messages }) => sum + messages, 0)
  return [
    {
      caption: 'by device and reason, the most messages first',
      head: ['device', 'reason', '*messages', 'oldest', 'latest', 'detail of the latest'],
      rows,
    },
    ...(more ? [`The list is incomplete: there are ${plural(all, 'message')}.`] : []),
  ]
}

/** Of one device. */
export function quarantinedText({ scanned, messages }: View, { now }: Pick<Shown<unknown>, 'now'>): Block[] {
  if (scanned === 0) return ['The quarantine has no messages of this device.']
  const rows = messages.map((one) => [
    one.id,
    one.reason,
    { text: agoSince(one.arrivedAt, now), at: one.arrivedAt },
    one.topic,
    one.detail,
  ])
  const rest = messages.length < scanned ? [`and ${scanned - messages.length} more`] : []
  const head = ['id', 'reason', 'arrived', 'topic', 'detail']
  return [{ caption: 'messages, the oldest first', head, rows }, ...rest]
}
