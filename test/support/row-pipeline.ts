// row-pipeline.ts: a table of mappings and messages at the real gateway. Each row has a source and a device of its
// own, all rows one gateway; the result says what the service got and what was refused.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newFolder } from './folders.ts'
import { startPipeline, type Pipeline } from './pipeline-world.ts'

export type Row = {
  /** Fields of `map` beside the time and the position, or in their place; `undefined` removes one. */
  map?: Record<string, unknown>
  /** Other options of the source. */
  source?: Record<string, unknown>
  /** Each with `ts`, `lat` and `lon`, unless it has them itself; texts and bytes are sent as they are. */
  messages: readonly (Record<string, unknown> | string | Buffer)[]
  /** Levels of the topic behind the one of the row. Default: `car`. */
  level?: string
  /** Profile of the device in the device table. */
  privacy?: string
}

/** A payload as the service got it, without what is the same for all of them. */
export type SentPayload = {
  device: string
  at: number
  gps?: Record<string, unknown>
  signals?: { type: string; value: string; valueUnit?: string; assetPart?: string }[]
  [field: string]: unknown
}

export type RowResult = {
  /** In the order of their times. */
  sent: SentPayload[]
  /** Reasons of dead letters, of messages in quarantine, and of ignored ones. */
  refused: string[]
  /** What was omitted, as `field: why`, sorted; and what was sent although it is doubtful. */
  omitted: string[]
  flagged: string[]
}

/** A minute ago, to the second. */
export const rowTime = Math.floor(Date.now() / 1000) * 1000 - 60_000

/** A text without braces gets the time and the position in front: `"x":1`. */
export const messageText = (members: string, at = rowTime) => `{"ts":${at},"lat":48,"lon":9,${members}}`

export async function resultsOf(
  rows: Readonly<Record<string, Row>>,
  sections: Record<string, unknown> = {},
): Promise<Record<string, RowResult>> {
  const folder = await newFolder()
  const all = Object.entries(rows).map(([name, row], index) => ({ name, row, id: `row-${index}` }))
  const table = all.map(({ row, id }) => `${id},${row.privacy ?? ''}`)
  await writeFile(join(folder, 'devices.csv'), ['device,privacy', ...table, ''].join('\n'))
  const pipeline = await startPipeline({ folder, config: configOf(all, sections) })
  const client = await pipeline.device('rows')
  let messages = 0
  for (const { row, id } of all)
    for (const [index, message] of row.messages.entries()) {
      messages += 1
      const place = { ts: rowTime + index * 1000, lat: 48, lon: 9 }
      const isWritten = typeof message === 'string' || Buffer.isBuffer(message)
      const payload = isWritten ? message : JSON.stringify({ ...place, ...message })
      client.publish({ topic: `${id}/${row.level ?? 'car'}`, payload, messageId: messages })
    }
  await client.acked(messages)
  await pipeline.until(() => isSettled(pipeline))
  const { reasons, mapping } = pipeline.status()
  const received = pipeline.sandbox.received({ limit: 100_000 }).map(({ payload }) => payload)
  return Object.fromEntries(
    all.map(({ name, id }) => {
      const sent = received.filter((payload) => sourceOf(payload) === id).map(payloadOf)
      return [
        name,
        {
          sent: sent.sort((one, other) => one.at - other.at),
          refused: reasons.flatMap(({ source, reason, messages: count }) =>
            source === id ? Array<string>(count).fill(reason) : [],
          ),
          omitted: countedOf(mapping.omitted, id),
          flagged: countedOf(mapping.flagged, id),
        },
      ]
    }),
  )
}

type Counted = { source: string; field: string; reason: string; values: number }

function countedOf(list: readonly Counted[], id: string): string[] {
  return list
    .flatMap(({ source, field, reason, values }) =>
      source === id ? Array<string>(values).fill(`${field}: ${reason}`) : [],
    )
    .sort()
}

type NamedRow = { name: string; row: Row; id: string }

function configOf(rows: readonly NamedRow[], sections: Record<string, unknown>) {
  const sources = rows.map(({ row, id }) => ({
    name: id,
    topic: `${id}/{level}`,
    device: id,
    defaults: { carrier: id },
    ...row.source,
    map: {
      time: { path: 'ts', format: 'ms' },
      latitude: { path: 'lat' },
      longitude: { path: 'lon' },
      ...row.map,
    },
  }))
  return (baseUrl: string) =>
    JSON.stringify({
      ingest: { broker: { listeners: [{ url: 'mqtt://127.0.0.1:0' }], access: { anonymous: true } } },
      sources,
      devices: { file: 'devices.csv' },
      clocks: { trust_local: true },
      spool: { path: './spool', allow_in_memory: true, max_bytes: '1GiB', min_free_bytes: '1MiB' },
      delivery: { base_url: baseUrl, batch: { linger: '20ms' } },
      ops: { listen: '127.0.0.1:0', stop_deadline: '5s' },
      log: { level: 'error' },
      ...sections,
    })
}

/** All messages are mapped or kept, and all payloads delivered. */
function isSettled(pipeline: Pipeline): boolean {
  const { totals, internals } = pipeline.status()
  return internals.conservation.messages.difference === 0 && totals.delivered === totals.payloads
}

function sourceOf(payload: Record<string, unknown>): unknown {
  return payload['carrier']
}

function payloadOf(payload: Record<string, unknown>): SentPayload {
  const {
    payloadId: _id,
    carrier: _carrier,
    assetIdentifier: _asset,
    deviceIdentifier,
    signalTimestamp,
    signals,
    ...rest
  } = payload
  const device = (deviceIdentifier as { id: string }).id
  const plain = (
    signals as ({ id: string } & NonNullable<SentPayload['signals']>[number])[] | undefined
  )?.map(({ id: _signalId, ...signal }) => signal)
  return { device, at: Number(signalTimestamp), ...(plain && { signals: plain }), ...rest }
}
