import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { sandboxAccount, type SandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { batchOf, call, openSandbox, signed, telemetry } from '../support/sandbox-world.ts'

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
describe('a body that is not a JSON object gets 400 on both operations', () => {
  const deep = `{"batchId":"${randomUUID()}","data":[{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}]}`
  test.each<[string, string | Buffer]>([
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['10,000 levels', deep],
  ])('%s', async (_, body) => {
    await using world = await openSandbox()
    for (const answer of [await world.single(body), await world.batch(body)])
      expect(answer).toMatchObject({ status: 400, json: { reason: 'body_not_json' } })
  })

  test('brackets inside a string do not count as nesting', async () => {
    await using world = await openSandbox()
    expect((await world.single(telemetry({ carrier: `\\"${'['.repeat(500)}` }))).status).toBe(202)
  })

  test('a key named __proto__ has no effect', async () => {
    await using world = await openSandbox()
    const text = JSON.stringify(telemetry({ carrier: 'X' })).replace(
      '"carrier":"X"',
      '"__proto__":{"carrier":7}',
    )
    expect((await world.single(text)).status).toBe(202)
    expect(({} as Record<string, unknown>)['carrier']).toBeUndefined()
  })
})

describe('a body', () => {
  const gzipped = { headers: { 'content-encoding': 'gzip' } }

  test('a body compressed with gzip is accepted; the signature is about the bytes as they were sent', async () => {
    await using world = await openSandbox()
    const body = Buffer.from(JSON.stringify(batchOf([telemetry()])))
    expect((await world.batch(gzipSync(body), gzipped)).status).toBe(200)
    expect((await world.batch(gzipSync(body, { level: 1 }), gzipped)).status).toBe(200)
    expect((await world.batch(body)).status).toBe(200)
    expect(world.sandbox.stats()).toMatchObject({
      batches: 1,
      payloadsAccepted: 1,
      repeats: 2,
      repeatsWithOtherBytes: 0,
    })
  })

  test('half a body compressed with gzip is refused', async () => {
    await using world = await openSandbox()
    const half = await world.single(gzipSync(JSON.stringify(telemetry())).subarray(0, 60), gzipped)
    expect(half).toMatchObject({ status: 400, json: { reason: 'content_encoding' } })
  })

  test('a small body that is large when decompressed is refused', async () => {
    await using world = await openSandbox()
    const answer = await world.single(gzipSync(Buffer.alloc(200 * 1024 ** 2, ' ')), gzipped)
    expect(answer).toMatchObject({ status: 413, json: { reason: 'body_too_large' } })
  })

  test('Content-Type need not be signed', async () => {
    await using world = await openSandbox()
    expect((await world.single(telemetry(), { contentType: 'unsigned' })).status).toBe(202)
  })
})

describe('X-Provider-Key', () => {
  const aggregator: SandboxAccount = {
    accessKeyId: 'AGGREGATOR',
    secret: new Secret('of the aggregator'),
    aggregator: true,
    providers: ['north', 'south'],
  }
  const accounts = [sandboxAccount, aggregator]
  const key = (name: string) => ({ account: aggregator, headers: { 'x-provider-key': name } })

  test('an aggregator is refused without it, and with an unknown one', async () => {
    await using world = await openSandbox({ accounts })
    const without = await world.single(telemetry(), { account: aggregator })
    expect(without).toMatchObject({ status: 400, json: { reason: 'provider_missing' } })
    const unknown = await world.batch(batchOf([telemetry()]), key('west'))
    expect(unknown).toMatchObject({ status: 400, json: { reason: 'provider_unknown' } })
    expect((await world.batch(batchOf([telemetry()]), key('south'))).status).toBe(200)
    expect(world.sandbox.received({ limit: 9 })).toMatchObject([{ provider: 'south' }])
  })

  test('the status of that refusal is a setting', async () => {
    await using world = await openSandbox({ accounts, missingProviderStatus: 403 })
    expect((await world.single(telemetry(), { account: aggregator })).status).toBe(403)
  })

  test('an account of one provider does not need it', async () => {
    await using world = await openSandbox({ accounts })
    expect((await world.single(telemetry())).status).toBe(202)
  })
})

describe('every answer has its own requestId', () => {
  test.each([
    ['GET', '/v2/telemetry', 405],
    ['PUT', '/v2/telemetry/batch', 405],
    ['POST', '/v1/telemetry', 404],
    ['POST', '/v2/telemetry/', 404],
    ['GET', '/', 404],
    ['POST', '/v2/telemetry', 403],
  ])('%s %s: %i', async (method, path, status) => {
    await using world = await openSandbox()
    const ask = () =>
      call({ url: world.url + path, method, headers: {}, body: undefined as unknown as string })
    const [first, second] = [await ask(), await ask()]
    expect(first.status).toBe(status)
    expect(first.json['requestId']).toMatch(uuid)
    expect(first.json['errorMessage']).toEqual(expect.any(String))
    expect(second.json['requestId']).not.toBe(first.json['requestId'])
    expect(first.headers.get('allow')).toBe(status === 405 ? 'POST' : null)
  })

  test('a base path precedes both operations', async () => {
    await using world = await openSandbox({ basePath: '/prod' })
    expect(world.url).toMatch(/\/prod$/)
    expect((await world.single(telemetry())).status).toBe(202)
    expect((await world.batch(batchOf([telemetry()]))).status).toBe(200)
    const { origin } = new URL(world.url)
    const elsewhere = await signed(`${origin}/v2/telemetry`, JSON.stringify(telemetry()), world.clock)
    expect((await call(elsewhere)).status).toBe(404)
  })
})
