import { describe, expect, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import { openSandboxPipeline } from '../support/sandbox-pipeline.ts'

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
  test('each payload is sent under the key of its provider, and no batch mixes them', async () => {
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

  test('each is sent to its own address, with its own credentials and operation', async () => {
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

  test('a 403 for one does not stop the others, and loses nothing', async () => {
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
})

describe('a provider that left the config', () => {
  test('keeps its payloads, and their number is reported', async () => {
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
