// spool-operations.ts: what an operator does with the spool of the running daemon.

import { isAbsolute, normalize, resolve, sep } from 'node:path'
import { z } from 'zod'
import type { LaneId, ProviderName } from '../../domain/ids.ts'
import { zonedTime } from '../../std/clock.ts'
import { formatSize, plural } from '../../std/quantity.ts'
import { assignLaneSchema, snapshotSchema, verifySchema } from '../http/answer-schemas/control-schemas.ts'
import { badParameter, ok, starting } from '../http/json-answer.ts'
import { noParameters, requiredInteger, requiredText } from '../http/http-routing/parameters.ts'
import { providerRefused } from './batches-operations.ts'
import { operation, type Operation } from './operation.ts'
import type { Block } from './shown-block.ts'

export const spoolOperations: readonly Operation[] = [
  operation({
    name: 'spool/verify',
    effect: 'checks',
    summary: 'Read every record of the spool and compare it with the totals.',
    notes: ['Exit status 1: a file or a record is damaged, or a total is wrong.'],
    parameters: noParameters,
    means: 'What was found.',
    schema: verifySchema,
    run: async ({ signal }, { check }) => ok(await check(signal)),
    text: verifyText,
    isDone: ({ ok: isSound }) => isSound,
  }),
  operation({
    name: 'spool/snapshot',
    effect: 'changes',
    summary: 'Write a copy of the whole spool as it is between two writes, and read it back.',
    notes: [
      'The running daemon writes it, with the rights of its user.',
      'On the file system of the spool, tables are shared by hard links. They then need space only when the ' +
        'spool deletes them.',
      'The ledger is not part of a snapshot.',
    ],
    parameters: z.strictObject({
      to: requiredText('Empty directory to write into; over HTTP an absolute path.', {
        value: 'dir',
        read: folder,
      }),
    }),
    means: 'The snapshot.',
    schema: snapshotSchema,
    async run({ source, values: { to }, caller, signal }, { snapshotsFolder }) {
      const { spoolWork: spool } = source.stages
      if (!spool) return starting()
      if (!isAbsolute(to)) return badParameter('to must be an absolute path.', { parameter: 'to', found: to })
      // Who came over TCP has the rights of the daemon for no other file.
      if (caller.via === 'tcp' && !normalize(to).startsWith(`${snapshotsFolder}${sep}`))
        return badParameter(`Over TCP, to must be below ${snapshotsFolder}.`, { parameter: 'to', found: to })
      return ok(await spool.snapshot(to, signal))
    },
    text: ({ path, createdAt, payloads, batches, tables, linkedTables, bytes }) => [
      `The snapshot of ${zonedTime(createdAt)} is in ${path}. Every block of it was read.`,
      `${plural(payloads, 'payload')}, ${plural(batches, 'sealed batch', 'sealed batches')}; ` +
        `${formatSize(bytes)} in ${plural(tables, 'table')}, ${linkedTables} of them shared by hard links.`,
      `Restore it with: telemetry-gateway spool restore --from ${path} --path DIR`,
    ],
  }),
  operation({
    name: 'spool/assign-lane',
    effect: 'changes',
    summary: 'Give a lane whose provider is lost to a provider of the config.',
    notes: ['Its payloads are then delivered with the key of that provider.'],
    parameters: z.strictObject({
      lane: requiredInteger(
        'Number of the lane, from the condition LANE_UNKNOWN.',
        { min: 1, max: 9_999_999_999 },
        { value: 'n' },
      ),
      provider: requiredText('Provider whose payloads the lane holds.', { value: 'name' }),
    }),
    means: 'The lane and its payloads.',
    schema: assignLaneSchema,
    async answer({ source, values: { lane, provider } }) {
      const { spoolWork: spool, batches } = source.stages
      if (!spool) return starting()
      const refused = providerRefused(provider, batches?.providers ?? [])
      if (refused !== null) return refused
      const payloads = await spool.assignLane(lane as LaneId, provider as ProviderName)
      return ok({ lane, provider, payloads })
    },
    text: ({ lane, provider, payloads }) => [
      `Lane ${lane} with ${plural(payloads, 'payload')} belongs to provider ${provider} now.`,
    ],
  }),
]

function folder(text: string) {
  const isOne = text !== '' && text !== '-'
  return isOne ? { text: resolve(text) } : { wrong: 'Give a directory: several files are written.' }
}

function verifyText({
  ok: isSound,
  tables,
  lanes,
  shelves,
  problems,
  problemsHidden,
}: z.output<typeof verifySchema>): Block[] {
  const tableRows = tables.map((one) => [
    one.table,
    String(one.records),
    formatSize(one.bytes),
    String(one.damaged),
  ])
  const laneRows = lanes.map((one) => [
    String(one.lane),
    one.provider,
    one.role,
    ...[one.batches, one.appended, one.settled, one.open].map(String),
  ])
  const shelfRows = shelves.map((one) => [
    one.shelf,
    ...[one.kept, one.taken, one.damaged, one.messages].map(String),
  ])
  const hidden = problemsHidden > 0 ? [`and ${problemsHidden} more`] : []
  return [
    { caption: 'tables', head: ['table', '*records', '*size', '*damaged'], rows: tableRows },
    {
      caption: 'lanes',
      head: ['*lane', 'provider', 'role', '*batches', '*appended', '*settled', '*open'],
      rows: laneRows,
    },
    {
      caption: 'shelves',
      head: ['shelf', '*kept', '*taken', '*damaged', '*messages'],
      rows: shelfRows,
    },
    '',
    ...(isSound
      ? ['All records can be read, and the totals are right.']
      : ['Problems:', ...[...problems, ...hidden].map((problem) => `  ${problem}`)]),
  ]
}
