// Custody `delivered` with real gateways, a real spool, and the sandbox as the service; the engine is scripted. Its clock is
// fast.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createCustodyParts } from '../../support/custody-parts.ts'
import { startCustodyGateway } from '../../support/custody-world.ts'
import { eventually } from '../../support/eventually.ts'
import { newFolder } from '../../support/folders.ts'
import { messageOf, topicOf } from '../../support/pipeline-world.ts'
import { createScriptedEngine, type ScriptedEngine } from '../../support/scripted-engine.ts'

function publish(engine: ScriptedEngine, device: string, from: number, count: number): void {
  for (let n = from; n < from + count; n += 1) engine.publish(topicOf(device), messageOf(n))
}

const timeout = 180_000
/** One partition: what is behind a failing payload waits for it. */
const onePartition = { partitions: 1 }

describe('what waits', { timeout }, () => {
  test('is a condition, which names the batch, until the service has answered', async () => {
    const engine = createScriptedEngine()
    // The sender thread counts its timeout in real time: a request hangs for a second, then it is made again.
    const gateway = await startCustodyGateway(engine, {
      sandbox: { faults: { hang: 1 } },
      delivery: 'timeout: 1s',
    })
    publish(engine, 'truck-1', 0, 2)
    const waiting = () => gateway.status().conditions.find(({ code }) => code === 'CUSTODY_WAITING')
    await eventually(() => waiting() !== undefined)
    const [batch] = gateway.events.filter(({ kind }) => kind === 'batch_sealed') as { batchId: string }[]
    expect(waiting()?.why).toContain(batch!.batchId)
    expect(engine.counts.acked).toBe(0)
    gateway.sandbox.setFaults([])
    await eventually(() => engine.counts.acked === 2)
    await eventually(() => waiting() === undefined)
    expect(gateway.custody()).toMatchObject({ outstanding: 0, oldestSeconds: null, parked: 0 })
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 2, payloadsAccepted: 2 })
  })

  test('is one within 30 s after park_after', async () => {
    const world = await createCustodyParts({ script: () => 'hang', provider: { timeoutMs: 600_000 } })
    world.words('a')
    await world.passUntil(() => world.custody.states().length > 0)
    expect(world.custody.states()).toMatchObject([{ code: 'CUSTODY_WAITING' }])
    expect(world.custody.view().oldestMs).toBeLessThan(90_000)
  })
})

describe('messages of a device that is not listed', { timeout }, () => {
  test('are parked, and delivered from there when the device is listed', async () => {
    const engine = createScriptedEngine(onePartition)
    const folder = await newFolder()
    const devices = join(folder, 'devices.csv')
    await writeFile(devices, 'device\ntruck-1\n')
    const gateway = await startCustodyGateway(engine, {
      folder,
      more: 'devices: { file: devices.csv, unknown: quarantine }',
    })
    publish(engine, 'truck-new', 0, 4)
    publish(engine, 'truck-1', 0, 4)
    await eventually(() => engine.counts.acked === 8)
    expect(gateway.sandbox.stats().payloadsAccepted).toBe(4)
    expect(engine.parked.length).toBe(4)
    expect(gateway.status().totals.quarantined).toBe(4)
    await writeFile(devices, 'device\ntruck-1\ntruck-new\n')
    await gateway.gateway.reload('test')
    await eventually(() => gateway.sandbox.stats().payloadsAccepted === 8 && engine.parked.length === 0)
    expect(gateway.sandbox.stats()).toMatchObject({ distinctPayloadIds: 8, duplicatesAcrossBatches: 0 })
  })
})
