import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { sandboxAccount, type SandboxAccount } from '../../src/sandbox/sandbox.ts'
import { Secret } from '../../src/std/secret.ts'
import { batchOf, call, openSandbox, signed, telemetry } from '../support/sandbox-world.ts'

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
const detailFields = (json: Record<string, unknown>) =>
  (json['validationErrorDetails'] as { field: string }[]).map(({ field }) => field)

describe('a single payload', () => {
  test('is accepted with 202 and a body with only the requestId', async () => {
    await using world = await openSandbox()
    const payload = telemetry()
    const answer = await world.single(payload)
    expect(answer.status).toBe(202)
    expect(answer.json).toEqual({ requestId: expect.stringMatching(uuid) as string })
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(world.sandbox.received({ limit: 9 })).toMatchObject([{ batchId: null, payload }])
  })

  test('that is invalid gets 400 with the fields in validationErrorDetails, and is not accepted', async () => {
    await using world = await openSandbox()
    const answer = await world.single(telemetry({ gps: { latitude: null, longitude: 200 } }))
    expect(answer.status).toBe(400)
    expect(answer.json).toMatchObject({
      requestId: expect.stringMatching(uuid) as string,
      reason: 'payload_invalid',
    })
    expect(detailFields(answer.json)).toEqual(['gps.latitude', 'gps.longitude'])
    expect(world.sandbox.stats()).toMatchObject({ singles: 1, payloadsAccepted: 0, payloadsFailed: 1 })
  })
})

describe('a batch', () => {
  test('is answered payload by payload with a summary, and with 200 even if some failed', async () => {
    await using world = await openSandbox()
    const good = telemetry({ payloadId: randomUUID().toUpperCase() })
    const bad = telemetry({ gps: { latitude: '', longitude: 1 } })
    const other = telemetry()
    const answer = await world.batch(batchOf([good, bad, other]))
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({
      requestId: expect.stringMatching(uuid) as string,
      responseCode: 200,
      accepted: [good.payloadId, other.payloadId],
      failed: [
        {
          payloadId: bad.payloadId,
          errorType: 'Validation',
          errorMessage: 'gps.latitude must not be empty.',
          validationErrorDetails: [{ field: 'gps.latitude', message: 'gps.latitude must not be empty' }],
        },
      ],
      summary: { total: 3, accepted: 2, failed: 1 },
    })
  })

  test('whose payloads all fail gets 200 too', async () => {
    await using world = await openSandbox()
    const answer = await world.batch(batchOf([telemetry({ carrier: 7 })]))
    expect(answer).toMatchObject({
      status: 200,
      json: { accepted: [], summary: { total: 1, accepted: 0, failed: 1 } },
    })
  })

  test('with payloadIds that are not strings has failures with an empty payloadId', async () => {
    await using world = await openSandbox()
    const answer = await world.batch(batchOf([telemetry({ payloadId: null }), telemetry({ payloadId: 'x' })]))
    expect(answer.json['failed']).toMatchObject([{ payloadId: '' }, { payloadId: 'x' }])
  })

  test('may have wrapper fields that the specification does not show, and no timestamp', async () => {
    await using world = await openSandbox()
    const answer = await world.batch({ batchId: randomUUID(), data: [telemetry()], extra: 1 })
    expect(answer.status).toBe(200)
  })

  test.each<[string, string[], (batch: ReturnType<typeof batchOf>) => unknown]>([
    ['no batchId', ['batchId'], (batch) => ({ ...batch, batchId: undefined })],
    ['a batchId that is no UUID', ['batchId'], (batch) => ({ ...batch, batchId: 'batch-1' })],
    ['a batchId that is a number', ['batchId'], (batch) => ({ ...batch, batchId: 1 })],
    ['a timestamp that is text', ['timestamp'], (batch) => ({ ...batch, timestamp: '1763700000000' })],
    ['a timestamp of null', ['timestamp'], (batch) => ({ ...batch, timestamp: null })],
    ['no data', ['data'], (batch) => ({ ...batch, data: undefined })],
    ['data that is no array', ['data'], (batch) => ({ ...batch, data: batch.data[0] })],
    ['no payload in data', ['data'], (batch) => ({ ...batch, data: [] })],
    [
      'data with something else than objects',
      ['data[1]'],
      (batch) => ({ ...batch, data: [...batch.data, null] }),
    ],
    ['several faults at once', ['batchId', 'timestamp', 'data'], () => ({ timestamp: true })],
  ])('with %s gets 400 naming %j, and nothing of it is accepted', async (_, fields, change) => {
    await using world = await openSandbox()
    const answer = await world.batch(change(batchOf([telemetry()])))
    expect(answer).toMatchObject({ status: 400, json: { reason: 'wrapper_invalid' } })
    expect(answer.json['requestId']).toMatch(uuid)
    expect(detailFields(answer.json)).toEqual(fields)
    expect(world.sandbox.stats()).toMatchObject({ payloadsAccepted: 0, batches: 0, byStatus: { 400: 1 } })
  })

  test('with more payloads than the limit gets 413', async () => {
    await using world = await openSandbox({ payloadsMax: 2 })
    const three = [telemetry(), telemetry(), telemetry()]
    expect(await world.batch(batchOf(three))).toMatchObject({
      status: 413,
      json: { reason: 'too_many_payloads' },
    })
    expect((await world.batch(batchOf(three.slice(1)))).status).toBe(200)
  })
})

describe('a body that is not a JSON object gets 400 on both operations', () => {
  const deep = `{"batchId":"${randomUUID()}","data":[{"x":${'['.repeat(10_000)}${']'.repeat(10_000)}}]}`
  test.each<[string, string | Buffer, string]>([
    ['nothing', '', 'body_not_json'],
    ['text', 'hello', 'body_not_json'],
    ['half an object', '{"batchId":', 'body_not_json'],
    ['a byte order mark', '\ufeff{}', 'body_not_json'],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 'body_not_json'],
    ['10,000 levels', deep, 'body_not_json'],
    ['an array', '[]', 'body_not_object'],
    ['null', 'null', 'body_not_object'],
    ['a number', '1e400', 'body_not_object'],
  ])('%s', async (_, body, reason) => {
    await using world = await openSandbox()
    for (const answer of [await world.single(body), await world.batch(body)])
      expect(answer).toMatchObject({ status: 400, json: { reason, validationErrorDetails: [] } })
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

describe('Content-Type must be application/json', () => {
  test.each([
    ['application/json; charset=utf-8', 202],
    ['Application/JSON', 202],
    ['text/plain', 400],
    ['application/jsonp', 400],
    ['application/json; charset=latin1', 400],
    ['application/x-www-form-urlencoded', 400],
  ])('%s: %i', async (type, status) => {
    await using world = await openSandbox()
    const answer = await world.single(telemetry(), { headers: { 'content-type': type } })
    expect(answer.status).toBe(status)
    expect(answer.json['reason']).toBe(status === 400 ? 'content_type' : undefined)
  })

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

  test('other encodings, and a body that is not gzip, are refused', async () => {
    await using world = await openSandbox()
    const brotli = await world.single(telemetry(), { headers: { 'content-encoding': 'br' } })
    expect(brotli).toMatchObject({ status: 400, json: { reason: 'content_type' } })
    const plain = await world.single(telemetry(), gzipped)
    expect(plain).toMatchObject({ status: 400, json: { reason: 'content_encoding' } })
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
