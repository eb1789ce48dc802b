import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { createDeliveryWorld } from '../support/delivery-world.ts'
import { newFolder } from '../support/folders.ts'
import { openSandboxPipeline } from '../support/sandbox-pipeline.ts'
import { acceptAll } from '../support/scripted-service.ts'

const wrongKeys = {
  source: 'keys',
  accessKeyId: sandboxAccount.accessKeyId,
  secretAccessKey: new Secret('not the one that is registered'),
  sessionToken: null,
} as const

const aggregator = {
  accounts: [{ ...sandboxAccount, aggregator: true, providers: ['North Haul', 'South Haul'] }],
}

describe('several providers', () => {
  test('each payload goes under the key of its own, and no batch mixes them', async () => {
    const pipeline = await openSandboxPipeline({
      sandbox: aggregator,
      providers: [
        { name: 'north', providerKey: 'North Haul' },
        { name: 'south', providerKey: 'South Haul' },
      ],
    })
    for (let round = 0; round < 10; round += 1) {
      await pipeline.publish(20, { provider: 'north', from: round * 20 })
      await pipeline.publish(20, { provider: 'south', from: round * 20 })
    }
    await pipeline.until(() => pipeline.spool.totals().delivered === 400)
    const arrived = pipeline.arrived()
    expect(arrived.size).toBe(400)
    for (const [device, key] of arrived)
      expect(key).toBe(device.startsWith('north') ? 'North Haul' : 'South Haul')
    expect(pipeline.sandbox.stats().refusedRequests).toEqual({})
  })

  test('each by its own address, credentials and operation', async () => {
    const second = { accessKeyId: 'SECONDACCOUNT', secret: new Secret('second secret') }
    const pipeline = await openSandboxPipeline({
      sandbox: { accounts: [sandboxAccount, second] },
      providers: [
        { name: 'north' },
        {
          name: 'south',
          mode: 'single',
          credentials: {
            source: 'keys',
            accessKeyId: 'SECONDACCOUNT',
            secretAccessKey: second.secret,
            sessionToken: null,
          },
        },
      ],
    })
    await pipeline.publish(30, { provider: 'north' })
    await pipeline.publish(5, { provider: 'south' })
    await pipeline.until(() => pipeline.spool.totals().delivered === 35)
    expect(pipeline.sandbox.stats()).toMatchObject({ singles: 5, payloadsAccepted: 35 })
    expect(new Set(pipeline.arrived().values())).toEqual(new Set([null]))
  })

  test("one's 403 stops none of the others, and loses nothing", async () => {
    const pipeline = await openSandboxPipeline({
      providers: [{ name: 'north', credentials: wrongKeys }, { name: 'south' }],
    })
    await pipeline.publish(100, { provider: 'north' })
    await pipeline.publish(300, { provider: 'south' })
    await pipeline.until(() => pipeline.spool.totals().delivered === 300)
    await pipeline.until(() => pipeline.ofKind('endpoint_unauthorized').length > 0)
    expect(pipeline.delivery.providers().map(({ name, endpoint }) => [name, endpoint])).toEqual([
      ['north', 'unauthorized'],
      ['south', 'available'],
    ])
    expect(pipeline.spool.lanes().find(({ provider }) => provider === 'north')?.open).toBe(100)
  })

  test("one whose service hangs takes none of the others' places", async () => {
    const pipeline = await openSandboxPipeline({
      // Nothing listens on port 9 of a network that is nowhere (RFC 5737).
      providers: [{ name: 'north', baseUrl: 'http://192.0.2.1:9', timeoutMs: 60_000 }, { name: 'south' }],
    })
    await pipeline.publish(200, { provider: 'north' })
    await pipeline.publish(200, { provider: 'south' })
    await pipeline.until(() => pipeline.spool.totals().delivered === 200)
    expect(pipeline.spool.lanes().find(({ provider }) => provider === 'north')?.open).toBe(200)
  })
})

describe('one provider', () => {
  test('sends no key that nobody configured', async () => {
    const pipeline = await openSandboxPipeline()
    await pipeline.publish(3)
    await pipeline.until(() => pipeline.spool.totals().delivered === 3)
    expect([...pipeline.arrived().values()]).toEqual([null, null, null])
  })
})

describe('a provider that left the config', () => {
  test('keeps its payloads, and somebody is told how many', async () => {
    const pipeline = await openSandboxPipeline({ providers: [{ name: 'south' }] })
    await pipeline.publish(7, { provider: 'north' })
    await pipeline.publish(5, { provider: 'south' })
    await pipeline.until(
      () => pipeline.spool.totals().delivered === 5 && pipeline.ofKind('provider_unknown').length > 0,
    )
    expect(pipeline.ofKind('provider_unknown')).toEqual([
      { kind: 'provider_unknown', provider: 'north', payloads: 7 },
    ])
    expect(pipeline.spool.lanes().find(({ provider }) => provider === 'north')?.open).toBe(7)
  })
})

describe('credentials that are mended', () => {
  const write = (path: string, secretAccessKey: string) =>
    writeFile(path, JSON.stringify({ accessKeyId: sandboxAccount.accessKeyId, secretAccessKey }))

  test(
    'in their file are taken at once after a 403, without a restart or a word',
    { timeout: 20_000 },
    async () => {
      const path = join(await newFolder(), 'ingestion.json')
      await write(path, 'a typo')
      const pipeline = await openSandboxPipeline({ providers: [{ credentials: { source: 'file', path } }] })
      await pipeline.publish(20)
      await pipeline.until(() => pipeline.ofKind('endpoint_unauthorized').length > 0)
      // The next probe would be in ten minutes.
      await write(path, sandboxAccount.secret.reveal())
      await pipeline.until(() => pipeline.spool.totals().delivered === 20)
      expect(pipeline.delivery.providers()[0]?.endpoint).toBe('available')
    },
  )

  test('a file that was rewritten with the same is no reason to ask again', { timeout: 20_000 }, async () => {
    const path = join(await newFolder(), 'ingestion.json')
    await write(path, 'a typo')
    const pipeline = await openSandboxPipeline({ providers: [{ credentials: { source: 'file', path } }] })
    await pipeline.publish(20)
    await pipeline.until(() => pipeline.ofKind('endpoint_unauthorized').length > 0)
    const { requests } = pipeline.sandbox.stats()
    await write(path, 'a typo')
    const untilMs = performance.now() + 3000
    await pipeline.until(() => performance.now() > untilMs)
    expect(pipeline.sandbox.stats().requests).toBe(requests)
  })

  test('that are rotated while batches go, with both valid for a while, cost no refusal', async () => {
    const next = { accessKeyId: 'NEXTACCOUNT', secret: new Secret('next secret') }
    const path = join(await newFolder(), 'ingestion.json')
    await write(path, sandboxAccount.secret.reveal())
    const pipeline = await openSandboxPipeline({
      sandbox: { accounts: [sandboxAccount, next] },
      providers: [{ credentials: { source: 'file', path } }],
    })
    await pipeline.publish(100)
    await writeFile(path, JSON.stringify({ accessKeyId: 'NEXTACCOUNT', secretAccessKey: 'next secret' }))
    await pipeline.publish(100, { from: 100 })
    await pipeline.until(() => pipeline.spool.totals().delivered === 200)
    expect(pipeline.sandbox.stats().refusedSignatures).toEqual({})
  })

  test('that were revoked before the next were seen: the refused batch goes again at once', async () => {
    const path = join(await newFolder(), 'ingestion.json')
    const writeKey = (accessKeyId: string) =>
      writeFile(path, JSON.stringify({ accessKeyId, secretAccessKey: 's' }))
    await writeKey('OLD')
    const world = await createDeliveryWorld({ provider: { credentials: { source: 'file', path } } })
    onTestFinished(() => world.end())
    await world.publish('a', 'b', 'c')
    await world.quiet()
    await writeKey('NEW')
    world.service.answer((received) =>
      received.headers.authorization?.includes('Credential=OLD/') ? { status: 403 } : acceptAll(received),
    )
    await world.publish('d', 'e', 'f')
    await world.quiet()
    const keys = world.service.received.map(
      ({ headers }) => /Credential=(\w+)/.exec(headers.authorization ?? '')?.[1],
    )
    expect(keys).toEqual(['OLD', 'OLD', 'NEW'])
    expect(world.spool.totals().delivered).toBe(6)
    expect(world.ofKind('endpoint_unauthorized')).toEqual([])
  })
})
