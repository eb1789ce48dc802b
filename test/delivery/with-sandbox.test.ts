// The road from a spool in LevelDB to the sandbox, which verifies every signature and every replayed byte with
// code of its own. Real time and real sockets; the back-off is made short.

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createDelivery } from '../../src/delivery/delivery.ts'
import type { Delivery } from '../../src/delivery/delivery.ts'
import { defaultBackoff } from '../../src/delivery/delivery-options.ts'
import type { ProviderOptions } from '../../src/delivery/delivery-options.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import { createSandbox, sandboxAccount } from '../../src/sandbox/sandbox.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { openSpool } from '../../src/spool/spool.ts'
import type { Spool } from '../../src/spool/spool.ts'
import { systemClock } from '../../src/std/clock.ts'
import { Secret } from '../../src/std/secret.ts'
import { openLevelStore, realDisk } from '../../src/storage/storage.ts'
import { providerOptions } from '../support/delivery-world.ts'
import { payloadNamed, smallOptions } from '../support/spool-world.ts'

let path: string
let sandbox: Sandbox
let url: string
let spool: Spool
let delivery: Delivery
let events: GatewayEvent[]

beforeEach(async () => {
  path = await mkdtemp(join(tmpdir(), 'delivery-'))
  events = []
  sandbox = createSandbox(
    { clock: systemClock, newId: randomUUID, random: Math.random },
    { accounts: [sandboxAccount], basePath: '/depot' },
  )
  const listening = await sandbox.listen({ host: '127.0.0.1', port: 0 })
  url = listening.url
  const { clock, emit } = { clock: systemClock, emit: (event: GatewayEvent) => void events.push(event) }
  spool = await openSpool(
    { clock, newId: randomUUID, random: Math.random, emit, openStore: openLevelStore, disk: realDisk },
    smallOptions(path, {
      bytesMax: 64 * 1024 ** 2,
      group: { chunkPayloadsMax: 50, chunkBytesMax: 64 * 1024 },
    }),
  )
})

afterEach(async () => {
  await delivery.stop(AbortSignal.abort())
  await spool.close()
  await sandbox.close()
  await rm(path, { recursive: true })
})

function start(changes: Partial<ProviderOptions> = {}): void {
  const { accessKeyId, secret } = sandboxAccount
  const provider = providerOptions(url, {
    credentials: { source: 'keys', accessKeyId, secretAccessKey: secret, sessionToken: null },
    batch: { payloadsMax: 50, bodyBytesMax: 1024 ** 2, lingerMs: 20 },
    timeoutMs: 400,
    backoff: { ...defaultBackoff, minMs: 5, maxMs: 40 },
    ...changes,
  })
  delivery = createDelivery(
    { spool, clock: systemClock, random: Math.random, emit: (event) => void events.push(event) },
    { providers: [provider], maxInFlightTotal: 64 },
  )
  delivery.start()
}

async function publish(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const named = payloadNamed(`truck-${index}`)
    const json = named.json.replace('"note":""', '"gps":{"latitude":60.1,"longitude":24.9}')
    spool.append({ ...named, json }, false)
    if (index % 20 === 19) await acked()
  }
  await acked()
}

const acked = () =>
  new Promise<void>((resolve, reject) => spool.endMessage((fault) => (fault ? reject(fault) : resolve())))

/** Resolves when `condition` holds; looks again at each thing that delivery reports. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition())
    await new Promise<void>((resolve) => {
      setImmediate(resolve)
    })
}

/** Nothing is open, and what was settled is durable. */
const isEmpty = () => {
  const { payloads, delivered, dead } = spool.totals()
  return payloads === delivered + dead
}

test('every signature is accepted and every payload arrives once', async () => {
  start()
  await publish(500)
  await until(isEmpty)
  const stats = sandbox.stats()
  expect(stats).toMatchObject({
    distinctPayloadIds: 500,
    payloadsAccepted: 500,
    repeats: 0,
    refusedSignatures: {},
  })
  expect(delivery.providers()[0]).toMatchObject({ endpoint: 'available', clockOffsetMs: expect.any(Number) })
  expect(Math.abs(delivery.providers()[0]?.clockOffsetMs ?? Infinity)).toBeLessThan(1000)
})

test('through failures of every kind nothing arrives under two batchIds and no byte differs', async () => {
  sandbox.setFaults({
    status: { 500: 0.1, 503: 0.1, 429: 0.05 },
    after_commit: { cut: 0.1, error: 0.1, hang: 0.02 },
    body: { truncated: 0.05, html: 0.05 },
    hang: 0.02,
  })
  start()
  await publish(600)
  await until(() => sandbox.stats().distinctPayloadIds === 600)
  sandbox.setFaults([])
  await until(isEmpty)
  const stats = sandbox.stats()
  expect(stats).toMatchObject({
    duplicatesAcrossBatches: 0,
    repeatsWithOtherBytes: 0,
    distinctPayloadIds: 600,
  })
  expect(stats.refusedSignatures).toEqual({})
  expect(spool.totals().delivered).toBe(600)
})

test('a wrong secret is told as unauthorized, and nothing is lost', async () => {
  const wrong = new Secret('another secret')
  const { accessKeyId } = sandboxAccount
  start({ credentials: { source: 'keys', accessKeyId, secretAccessKey: wrong, sessionToken: null } })
  await publish(10)
  await until(() => events.some(({ kind }) => kind === 'endpoint_unauthorized'))
  expect(sandbox.stats().distinctPayloadIds).toBe(0)
  expect(spool.lanes()[0]?.open).toBe(10)
})
