// Several providers in one gateway, each with credentials of its own. What each is sent: providers.test.ts, and
// test/delivery/several-providers.test.ts.

import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sandboxAccount } from '../../src/sandbox/sandbox.ts'
import type { SandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { newFolder } from '../support/folders.ts'
import { messageOf, startPipeline, startSandbox } from '../support/pipeline-world.ts'
import type { Pipeline } from '../support/pipeline-world.ts'

const perProvider = 200

const aggregator: SandboxAccount = {
  accessKeyId: 'AKIDAGGREGATOR',
  secret: new Secret('the-aggregator-secret'),
  aggregator: true,
  providers: ['North Fleet', 'South'],
}

type Entry = { name: string; key?: string; account: SandboxAccount; baseUrl?: string }

const north: Entry = { name: 'north', key: 'North Fleet', account: aggregator }
const south: Entry = { name: 'south', key: 'South', account: aggregator }
const unknownAccount: Entry = {
  name: 'south',
  account: { accessKeyId: 'AKIDNOBODY', secret: new Secret('not-registered') },
}

const fileOf = ({ accessKeyId }: SandboxAccount) => `${accessKeyId}.json`

/** A gateway with these providers; each has a source of its own, topics `<provider>/<device>`. */
async function startProviders(
  entries: readonly Entry[],
  options: { folder?: string } = {},
): Promise<Pipeline> {
  const folder = options.folder ?? (await newFolder())
  for (const { account } of entries) {
    const keys = { accessKeyId: account.accessKeyId, secretAccessKey: account.secret.reveal() }
    await writeFile(join(folder, fileOf(account)), JSON.stringify(keys))
  }
  const providers = entries.map(({ name, key, account, baseUrl }) => ({
    name,
    ...(key === undefined ? {} : { provider_key: key }),
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    credentials: { source: 'file', path: join(folder, fileOf(account)) },
  }))
  const map = { time: { path: 'ts', format: 'ms' }, latitude: { path: 'lat' }, longitude: { path: 'lon' } }
  const sources = entries.map(({ name }) => ({ name, topic: `${name}/{device}`, provider: name, map }))
  return startPipeline({
    folder,
    sandbox: { accounts: [sandboxAccount, aggregator] },
    config: (baseUrl) =>
      JSON.stringify({
        ingest: { broker: { listeners: [{ url: 'mqtt://127.0.0.1:0' }], access: { anonymous: true } } },
        sources,
        defaults: { carrier: 'ACME', operator: 'OP1', asset_type: 'TRACTOR' },
        spool: { path: './spool', max_bytes: '1GiB', min_free_bytes: '1MiB' },
        delivery: { base_url: baseUrl, batch: { max_payloads: 20, linger: '20ms' }, providers },
        ops: { listen: '127.0.0.1:0', stop_deadline: '1s' },
      }),
  })
}

async function publish(pipeline: Pipeline, provider: string, messages = perProvider): Promise<void> {
  const device = await pipeline.device(`of-${provider}`)
  for (let n = 0; n < messages; n += 1)
    device.publish({ topic: `${provider}/truck-${n % 7}`, payload: messageOf(n), messageId: n + 1 })
  await device.acked(messages)
}

/** Payloads of a provider that wait in the spool. */
function waiting(pipeline: Pipeline, provider: string): number {
  const own = pipeline.status().lanes.filter((lane) => lane.provider === provider)
  return own.reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)
}

const delivered = (pipeline: Pipeline) => pipeline.status().totals.delivered

describe('several providers', () => {
  test('a provider whose service hangs does not delay the other', async () => {
    const hanging = createServer(() => undefined)
    await new Promise<void>((resolve) => {
      hanging.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => {
      hanging.close()
      hanging.closeAllConnections()
    })
    const { port } = hanging.address() as AddressInfo
    const pipeline = await startProviders([north, { ...south, baseUrl: `http://127.0.0.1:${port}` }])
    await publish(pipeline, 'south')
    await publish(pipeline, 'north')
    await pipeline.until(() => delivered(pipeline) === perProvider)
    expect(waiting(pipeline, 'south')).toBe(perProvider)
  })

  test('payloads of a provider that left the config are kept and reported, and sent when it is back', async () => {
    const folder = await newFolder()
    const before = await startProviders([north, unknownAccount], { folder })
    await publish(before, 'south')
    await before.gateway.stop('south leaves')

    const without = await startProviders([north], { folder })
    await publish(without, 'north')
    await without.until(() => delivered(without) >= perProvider)
    expect(waiting(without, 'south')).toBe(perProvider)
    const [unknown] = without.status().conditions.filter(({ code }) => code === 'PROVIDER_UNKNOWN')
    expect(JSON.stringify(unknown)).toMatch(/south.*200|200.*south/)
    await without.gateway.stop('south is back')

    const { url } = await startSandbox({ accounts: [aggregator] })
    const back = await startProviders([north, { ...south, baseUrl: url }], { folder })
    await back.until(() => waiting(back, 'south') === 0)
    expect(back.status().conditions.some(({ code }) => code === 'PROVIDER_UNKNOWN')).toBe(false)
  }, 30_000)
})
