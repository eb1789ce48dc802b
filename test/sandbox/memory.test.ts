import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createIdTable } from '../../src/sandbox/id-table.ts'
import { newFolder } from '../support/folders.ts'
import { batchOf, openSandbox, telemetry } from '../support/sandbox-world.ts'

const breakdown = ({ accepted, failed, summary }: Record<string, unknown>) => ({ accepted, failed, summary })

describe('the same batchId again', () => {
  test('gets the same breakdown under a new requestId, and has no second effect', async () => {
    const reported: (string | null)[] = []
    await using world = await openSandbox({ onAccepted: (batchId) => reported.push(batchId) })
    const batch = batchOf([telemetry(), telemetry({ carrier: 1 })])
    const first = await world.batch(batch)
    const second = await world.batch(batch)
    expect(breakdown(second.json)).toEqual(breakdown(first.json))
    expect(second.json['requestId']).not.toBe(first.json['requestId'])
    expect(reported).toEqual([batch.batchId])
    expect(world.sandbox.received({ limit: 9 })).toHaveLength(1)
  })

  test('that was evicted at the bound is processed again, and its payloads count as duplicates', async () => {
    await using world = await openSandbox({ batchesRememberedMax: 2 })
    const batches = [batchOf([telemetry()]), batchOf([telemetry()]), batchOf([telemetry()])] as const
    await world.batch(batches[0])
    await world.batch(batches[1])
    // Asked for again, so the other one is the oldest now.
    await world.batch(batches[0])
    await world.batch(batches[2])
    expect(world.sandbox.stats()).toMatchObject({ batchesRemembered: 2, batchesForgotten: 1, repeats: 1 })
    await world.batch(batches[1])
    expect(world.sandbox.stats()).toMatchObject({
      repeats: 1,
      duplicatesUnderOneBatch: 1,
      duplicatesAcrossBatches: 0,
    })
  })

  test('the table distinguishes 50,000 ids with common parts', () => {
    const table = createIdTable(1_000_000)
    const ids = Array.from({ length: 50_000 }, (_, index) =>
      index % 2 === 0 ? randomUUID() : `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
    )
    expect(ids.filter((id, index) => table.note(id, index) !== null)).toEqual([])
    expect(ids.filter((id, index) => table.note(id.toUpperCase(), 7) !== index)).toEqual([])
    expect(table.size).toBe(50_000)
  })
})

describe('GET /sandbox/received', () => {
  test('shows the newest first, by device or asset, up to a limit', async () => {
    await using world = await openSandbox()
    const [one, two, three] = [
      telemetry(),
      telemetry({ deviceIdentifier: { id: 'other' }, assetIdentifier: undefined }),
      telemetry({ deviceIdentifier: undefined }),
    ]
    const { batchId } = batchOf([])
    const { json } = await world.batch(batchOf([one, two], batchId))
    await world.single(three)
    const ids = async (query: string) => {
      const { json } = await world.look(`/sandbox/received${query}`)
      return (json['received'] as { payload: { payloadId: string } }[]).map(
        ({ payload }) => payload.payloadId,
      )
    }
    expect(await ids('')).toEqual([three.payloadId, two.payloadId, one.payloadId])
    expect(await ids('?limit=1')).toEqual([three.payloadId])
    expect(await ids('?device=truck-7')).toEqual([one.payloadId])
    expect(await ids('?device=asset-7&limit=5')).toEqual([three.payloadId, one.payloadId])
    expect(await ids('?device=nobody')).toEqual([])
    const { requestId } = json
    expect(world.sandbox.received({ device: 'other', limit: 1 })).toEqual([
      {
        receivedAt: world.clock.now(),
        requestId,
        batchId,
        provider: null,
        payload: JSON.parse(JSON.stringify(two)) as unknown,
      },
    ])
    expect(await world.look('/sandbox/received?limit=all')).toMatchObject({ status: 400 })
  })

  test('keeps the newest within its bounds', async () => {
    await using world = await openSandbox({ receivedMax: 3 })
    const payloads = Array.from({ length: 7 }, () => telemetry())
    await world.batch(batchOf(payloads))
    const kept = world.sandbox.received({ limit: 99 }).map(({ payload }) => payload['payloadId'])
    expect(kept).toEqual(
      payloads
        .slice(4)
        .reverse()
        .map(({ payloadId }) => payloadId),
    )
  })

  test('keeps large payloads within its bytes', async () => {
    await using world = await openSandbox({ receivedBytesMax: 5000 })
    for (let index = 0; index < 4; index += 1) await world.single(telemetry({ carrier: 'x'.repeat(2000) }))
    expect(world.sandbox.received({ limit: 99 })).toHaveLength(1)
  })
})

describe('GET /sandbox/stats', () => {
  test('returns the result of stats(), and does not count its own request', async () => {
    await using world = await openSandbox()
    await world.batch(batchOf([telemetry()]))
    const { json } = await world.look('/sandbox/stats')
    expect(json).toEqual(world.sandbox.stats())
    expect(json['startedAt']).toBe(world.clock.now())
    expect(json['bytes']).toBeGreaterThan(400)
  })
})

describe('the file of accepted payloads', () => {
  test.each([false, true])(
    'has a line for each payload before the answer is sent (forced to the disk: %s)',
    async (acceptedSync) => {
      const acceptedPath = join(await newFolder(), 'accepted.ndjson')
      await using world = await openSandbox({ acceptedPath, acceptedSync })
      const [good, bad, alone] = [telemetry({ carrier: 'Ünïcode\n' }), telemetry({ carrier: 1 }), telemetry()]
      const batch = batchOf([good, bad])
      const { json } = await world.batch(batch)
      await world.batch(batch)
      const receivedAt = world.clock.now()
      const line = {
        receivedAt,
        requestId: json['requestId'],
        batchId: batch.batchId,
        provider: null,
        payload: good,
      }
      expect(await readFile(acceptedPath, 'utf8')).toBe(`${JSON.stringify(line)}\n`)
      await world.single(alone)
      const lines = (await readFile(acceptedPath, 'utf8')).trimEnd().split('\n')
      expect(lines.map((each) => (JSON.parse(each) as { batchId: unknown }).batchId)).toEqual([
        batch.batchId,
        null,
      ])
    },
  )

  test('is appended to, and a line that a kill truncated stays a separate line', async () => {
    const acceptedPath = join(await newFolder(), 'accepted.ndjson')
    await writeFile(acceptedPath, '{"receivedAt":1}\n{"recei')
    await using world = await openSandbox({ acceptedPath })
    await world.single(telemetry())
    const lines = (await readFile(acceptedPath, 'utf8')).split('\n')
    expect(lines.slice(0, 2)).toEqual(['{"receivedAt":1}', '{"recei'])
    expect(lines).toHaveLength(4)
  })

  test('that cannot be opened is reported at the start', async () => {
    await expect(openSandbox({ acceptedPath: '/nowhere/at/all' })).rejects.toMatchObject({
      code: 'OUTPUT_UNWRITABLE',
    })
  })
})
