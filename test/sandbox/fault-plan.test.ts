import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createRandom } from '../support/random.ts'
import { batchOf, call, openSandbox, signed, telemetry, type SandboxWorld } from '../support/sandbox-world.ts'

const idsOf = (payloads: readonly { payloadId: string }[]) => payloads.map(({ payloadId }) => payloadId)

/** Submits without waiting for the answer, but until the service has come so far. */
async function begin(world: SandboxWorld, until: (world: SandboxWorld) => boolean) {
  const request = await signed(
    `${world.url}/v2/telemetry/batch`,
    JSON.stringify(batchOf([telemetry()])),
    world.clock,
  )
  let settled = false
  const outcome = call(request)
    .then(
      ({ status }) => status,
      () => 'no answer',
    )
    .finally(() => {
      settled = true
    })
  while (!until(world)) await new Promise(setImmediate)
  return { outcome, settled: () => settled }
}

describe('statuses', () => {
  test.each([500, 503, 429, 403, 502])('always %i, before the request is checked', async (status) => {
    await using world = await openSandbox({ faults: { always: status } })
    const answer = await world.batch('nonsense', { region: 'x' })
    expect(answer).toMatchObject({ status, json: { reason: 'injected' } })
    expect(answer.json['requestId']).toEqual(expect.any(String))
    const { byStatus, faultsInjected, refusedSignatures } = world.sandbox.stats()
    expect({ byStatus, faultsInjected, refusedSignatures }).toEqual({
      byStatus: { [status]: 1 },
      faultsInjected: { [`status_${status}`]: 1 },
      refusedSignatures: {},
    })
  })

  test('at a rate, in the same sequence for the same seed', async () => {
    const story = async (seed: number) => {
      const random = createRandom(seed)
      await using world = await openSandbox({ faults: { status: { 500: 0.3, 429: 0.3 } } }, () =>
        random.next(),
      )
      const statuses: number[] = []
      for (let index = 0; index < 40; index += 1) statuses.push((await world.single(telemetry())).status)
      return statuses
    }
    const [first, second, other] = [await story(1), await story(1), await story(2)]
    expect(second).toEqual(first)
    expect(other).not.toEqual(first)
    for (const status of [500, 429, 202]) {
      const share = first.filter((each) => each === status).length / 40
      expect(share).toBeGreaterThan(0.1)
      expect(share).toBeLessThan(0.6)
    }
  })

  test('a redirect has a Location', async () => {
    await using world = await openSandbox({ faults: { always: 307 } })
    const answer = await world.single(telemetry())
    expect(answer.status).toBe(307)
    expect(answer.headers.get('location')).toBe('/elsewhere')
  })

  test('Retry-After is sent in seconds, or as a date by the clock of the service', async () => {
    await using world = await openSandbox({ faults: { always: 503, retry_after: '90s' } })
    expect((await world.single(telemetry())).headers.get('retry-after')).toBe('90')
    world.sandbox.setFaults({
      always: 429,
      retry_after: 90_000,
      retry_after_form: 'date',
      clock_offset: '1h',
    })
    const date = Date.parse((await world.single(telemetry())).headers.get('retry-after') ?? '')
    expect(date - world.clock.now() - 3_690_000).toBeLessThanOrEqual(0)
    expect(date - world.clock.now() - 3_690_000).toBeGreaterThan(-1000)
  })
})

describe('slow answers and no answers', () => {
  test('latency delays the request before it is processed', async () => {
    await using world = await openSandbox({ faults: { latency: '5s' } })
    const { outcome, settled } = await begin(world, ({ clock }) => clock.pending() === 1)
    await world.clock.advance(4999)
    expect(world.sandbox.stats().payloadsAccepted).toBe(0)
    expect(settled()).toBe(false)
    await world.clock.advance(1)
    expect(await outcome).toBe(200)
    expect(world.sandbox.stats().payloadsAccepted).toBe(1)
  })

  test('latency can be a range', async () => {
    await using world = await openSandbox({ faults: { latency: { min: 1000, max: 3000 } } }, () => 0.5)
    const { outcome } = await begin(world, ({ clock }) => clock.pending() === 1)
    expect(world.clock.nextIn()).toBe(2000)
    await world.clock.advance(2000)
    expect(await outcome).toBe(200)
  })

  test('latency after committing: payloads are accepted, and the answer is late', async () => {
    await using world = await openSandbox({ faults: { after_commit: { latency: '5s' } } })
    const { outcome, settled } = await begin(world, ({ clock }) => clock.pending() === 1)
    expect(world.sandbox.stats().payloadsAccepted).toBe(1)
    expect(settled()).toBe(false)
    await world.clock.advance(5000)
    expect(await outcome).toBe(200)
  })

  test.each([
    ['hang', { hang: 1 }, 0],
    ['hang_after_commit', { after_commit: { hang: 1 } }, 1],
  ])('%s: no answer until the sandbox closes', async (name, faults, accepted) => {
    const world = await openSandbox({ faults })
    const { outcome } = await begin(world, ({ sandbox }) => sandbox.stats().faultsInjected[name] === 1)
    expect(world.sandbox.stats()).toMatchObject({ payloadsAccepted: accepted, byStatus: {} })
    await world.sandbox.close()
    expect(await outcome).toBe('no answer')
  })
})

describe('cut connections', () => {
  test.each([
    ['cut_before_reading', { cut: { before_reading: 1 } }, 0],
    ['cut_after_reading', { cut: { after_reading: 1 } }, 0],
    ['cut_after_commit', { after_commit: { cut: 1 } }, 1],
  ])('%s', async (name, faults, accepted) => {
    await using world = await openSandbox({ faults: { count: 1, ...faults } })
    const batch = batchOf([telemetry()])
    await expect(world.batch(batch)).rejects.toThrow('fetch failed')
    expect(world.sandbox.stats()).toMatchObject({
      faultsInjected: { [name]: 1 },
      payloadsAccepted: accepted,
      byStatus: {},
    })
    expect((await world.batch(batch)).status).toBe(200)
    expect(world.sandbox.stats()).toMatchObject({ payloadsAccepted: 1, repeats: accepted })
  })

  test('an error after committing answers 500 although the batch was accepted', async () => {
    await using world = await openSandbox({
      faults: { count: 1, after_commit: { error: 1, error_status: 503 } },
    })
    const batch = batchOf([telemetry()])
    expect((await world.batch(batch)).status).toBe(503)
    expect(world.sandbox.stats()).toMatchObject({ payloadsAccepted: 1, byStatus: { 503: 1 } })
    expect((await world.batch(batch)).json).toMatchObject({ summary: { accepted: 1 } })
    expect(world.sandbox.stats()).toMatchObject({ payloadsAccepted: 1, repeats: 1 })
  })

  test('a refused batch is not committed, so a fault after committing does not apply', async () => {
    await using world = await openSandbox({ faults: { after_commit: { cut: 1 } } })
    expect((await world.batch({})).status).toBe(400)
  })
})

describe('damaged bodies', () => {
  test('truncated: fewer bytes than Content-Length', async () => {
    await using world = await openSandbox({ faults: { body: { truncated: 1 } } })
    await expect(world.batch(batchOf([telemetry()]))).rejects.toThrow('terminated')
    expect(world.sandbox.stats()).toMatchObject({
      payloadsAccepted: 1,
      faultsInjected: { body_truncated: 1 },
    })
  })

  test('half: the JSON is incomplete', async () => {
    await using world = await openSandbox({ faults: { body: { half: 1 } } })
    const answer = await world.batch(batchOf([telemetry()]))
    expect(answer).toMatchObject({ status: 200, json: {} })
    expect(answer.text).toMatch(/^\{"requestId":"/)
  })

  test('empty', async () => {
    await using world = await openSandbox({ faults: { body: { empty: 1 } } })
    expect(await world.single(telemetry())).toMatchObject({ status: 202, text: '' })
  })

  test('html, also over an injected status', async () => {
    await using world = await openSandbox({ faults: { always: 502, body: { html: 1 } } })
    const answer = await world.single(telemetry())
    expect(answer.status).toBe(502)
    expect(answer.headers.get('content-type')).toContain('text/html')
    expect(answer.text).toContain('<html>')
  })

  test('huge: spaces before the JSON', async () => {
    await using world = await openSandbox({ faults: { body: { huge: 1, huge_bytes: 300_000 } } })
    const answer = await world.batch(batchOf([telemetry()]))
    expect(answer.text.length).toBeGreaterThan(300_000)
    expect(answer.json).toMatchObject({ responseCode: 200 })
  })

  test('a client may disconnect during a huge body', async () => {
    await using world = await openSandbox({ faults: [{ count: 1, body: { huge: 1, huge_bytes: 2 ** 32 } }] })
    const request = await signed(`${world.url}/v2/telemetry`, JSON.stringify(telemetry()), world.clock)
    const gone = new AbortController()
    const { url, ...init } = request
    const answer = await fetch(url, { ...init, signal: gone.signal })
    gone.abort()
    await expect(answer.text()).rejects.toThrow('aborted')
    expect((await world.single(telemetry())).status).toBe(202)
  })
})

describe('inconsistent answers', () => {
  test('unlisted: accepted, and in neither list; the answer to a repeated batch may list it', async () => {
    await using world = await openSandbox({ faults: { count: 1, answer: { unlisted: 1 } } })
    const payloads = [telemetry(), telemetry()]
    const batch = batchOf(payloads)
    expect((await world.batch(batch)).json).toMatchObject({
      accepted: [],
      failed: [],
      summary: { total: 2, accepted: 2 },
    })
    expect((await world.batch(batch)).json).toMatchObject({ accepted: idsOf(payloads) })
    expect(world.sandbox.stats().payloadsAccepted).toBe(2)
  })

  test('lost: not accepted, in neither list, and not in the answer to a repeated batch', async () => {
    await using world = await openSandbox({ faults: { count: 1, lost: 1 } })
    const batch = batchOf([telemetry()])
    for (const _ of [1, 2])
      expect((await world.batch(batch)).json).toMatchObject({
        accepted: [],
        failed: [],
        summary: { total: 1 },
      })
    expect(world.sandbox.stats().payloadsAccepted).toBe(0)
  })

  test('both lists, an unknown id, a wrong summary, a responseCode', async () => {
    const answer = { both_lists: 1, foreign: 1, wrong_summary: 1, response_code: 207 }
    await using world = await openSandbox({ faults: { answer } })
    const payload = telemetry()
    const reported = await world.batch(batchOf([payload]))
    expect(reported).toMatchObject({
      status: 200,
      json: { responseCode: 207, summary: { total: 1, accepted: 2, failed: 0 } },
    })
    expect(reported.json['accepted']).toEqual([payload.payloadId, expect.any(String)])
    expect(reported.json['failed']).toMatchObject([{ payloadId: payload.payloadId }])
  })
})

describe('payloads that fail by rule', () => {
  test('by device, asset, payloadId and field, each with its own message; the first matching rule applies', async () => {
    await using world = await openSandbox()
    const payloads = [
      telemetry({ deviceIdentifier: { id: 'd' }, assetIdentifier: { id: 'a' } }),
      telemetry({ assetIdentifier: { id: 'a' } }),
      telemetry({ payloadId: 'ABCDEF00-0000-4000-8000-000000000000' }),
      telemetry({ gps: { latitude: 1, longitude: 2, altitude: 3 } }),
      telemetry(),
      telemetry({ carrier: 1, assetIdentifier: { id: 'a' } }),
    ]
    world.sandbox.setFaults({
      fail: [
        { device: 'd', error_type: 'Throttled', message: 'Later.' },
        { asset: 'a', field: 'assetIdentifier.id', message: 'Unknown asset.' },
        { id_prefix: 'ABCDEF', error_type: 'Duplicate' },
        { has: 'gps.altitude', rate: 1 },
        { rate: 0 },
      ],
    })
    const { json } = await world.batch(batchOf(payloads))
    const ids = idsOf(payloads)
    expect(json['accepted']).toEqual([ids[4]])
    expect(json['failed']).toMatchObject([
      { payloadId: ids[0], errorType: 'Throttled', errorMessage: 'Later.', validationErrorDetails: [] },
      {
        payloadId: ids[1],
        errorType: 'Validation',
        validationErrorDetails: [{ field: 'assetIdentifier.id', message: 'Unknown asset.' }],
      },
      { payloadId: ids[2], errorType: 'Duplicate' },
      { payloadId: ids[3], errorType: 'Validation' },
      { payloadId: ids[5], validationErrorDetails: [{ field: 'carrier' }] },
    ])
    expect(json['summary']).toEqual({ total: 6, accepted: 1, failed: 5 })
  })

  test('a repeated batch gets the failures of the first answer', async () => {
    await using world = await openSandbox({ faults: { count: 1, fail: [{ rate: 1 }] } })
    const batch = batchOf([telemetry()])
    for (const _ of [1, 2])
      expect((await world.batch(batch)).json).toMatchObject({ summary: { accepted: 0, failed: 1 } })
    expect((await world.batch(batchOf(batch.data))).json).toMatchObject({
      summary: { accepted: 1, failed: 0 },
    })
  })

  test('a single payload that fails by rule gets 400', async () => {
    await using world = await openSandbox({
      faults: { fail: [{ field: 'gps.speed', message: 'Too fast.' }] },
    })
    expect(await world.single(telemetry())).toMatchObject({
      status: 400,
      json: {
        errorMessage: 'Too fast.',
        validationErrorDetails: [{ field: 'gps.speed', message: 'Too fast.' }],
      },
    })
  })
})

describe('plans', () => {
  test('a list of plans runs in order, each for its number of requests', async () => {
    await using world = await openSandbox({
      faults: [
        { count: 2, always: 500 },
        { count: 1, always: 403 },
      ],
    })
    const statuses: number[] = []
    for (let index = 0; index < 5; index += 1) statuses.push((await world.single(telemetry())).status)
    expect(statuses).toEqual([500, 500, 403, 202, 202])
    expect((await world.look('/sandbox/faults')).json).toMatchObject([{ used: 2 }, { used: 1, always: 403 }])
  })

  test('a plan can be for one operation or one provider', async () => {
    await using world = await openSandbox({
      faults: [
        { only: { operation: 'single' }, always: 500 },
        { only: { provider: 'north' }, always: 403 },
      ],
    })
    expect((await world.single(telemetry())).status).toBe(500)
    expect((await world.batch(batchOf([telemetry()]))).status).toBe(200)
    const north = { headers: { 'x-provider-key': 'north' } }
    expect((await world.batch(batchOf([telemetry()]), north)).status).toBe(403)
  })

  test('PUT /sandbox/faults replaces them at run time, GET shows them', async () => {
    await using world = await openSandbox()
    expect((await world.look('/sandbox/faults')).json).toEqual([])
    expect((await world.putFaults({ always: 503 })).status).toBe(200)
    expect((await world.single(telemetry())).status).toBe(503)
    expect((await world.look('/sandbox/faults')).json).toMatchObject([{ always: 503, used: 1 }])
    expect((await world.putFaults([])).status).toBe(200)
    expect((await world.single(telemetry())).status).toBe(202)
  })

  test('invalid faults are refused with all their problems, and the plan in force stays', async () => {
    await using world = await openSandbox({ faults: { always: 503 } })
    const bad = {
      always: 200,
      status: { 500: 0.7, 429: 0.7 },
      hang: 2,
      latency: 'soon',
      body: { html: '1' },
      fail: [{ rate: -1 }],
      clock_offset: '1 fortnight',
      count: 0,
      surprise: 1,
    }
    const answer = await world.putFaults(bad)
    expect(answer).toMatchObject({ status: 400, json: { reason: 'faults_invalid' } })
    const details = answer.json['validationErrorDetails'] as { field: string }[]
    const fields = new Set(details.map(({ field }) => field))
    const named = [
      'always',
      'status',
      'hang',
      'latency',
      'body.html',
      'fail.0.rate',
      'clock_offset',
      'count',
      '',
    ]
    expect(fields).toEqual(new Set(named))
    expect((await world.putFaults('[{"always":500},{"status":{"200":1}}]')).json).toMatchObject({
      validationErrorDetails: [{ field: expect.stringMatching(/^1\.status/) as string }],
    })
    expect((await world.putFaults('{')).status).toBe(400)
    expect((await world.putFaults('7')).status).toBe(400)
    expect((await world.single(telemetry())).status).toBe(503)
    expect(() => world.sandbox.setFaults({ hang: 7 })).toThrow('hang')
  })
})

test('closing ends waiting connections, latency and hangs', async () => {
  const world = await openSandbox({ faults: { latency: '1h' } })
  const { outcome } = await begin(world, ({ clock }) => clock.pending() === 1)
  const idle = connect(Number(new URL(world.url).port), '127.0.0.1')
  await once(idle, 'connect')
  const closed = once(idle, 'close')
  await world.sandbox.close()
  await closed
  expect(await outcome).toBe('no answer')
  expect(world.clock.pending()).toBe(0)
})
