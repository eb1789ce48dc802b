import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createRandom } from '../support/random.ts'
import { batchOf, call, openSandbox, signed, telemetry, type SandboxWorld } from '../support/sandbox-world.ts'

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
  test.each([500, 429, 502])('always %i, before the request is checked', async (status) => {
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

describe('damaged bodies', () => {
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

test('a plan that is invalid is no plan of the sandbox', async () => {
  await using world = await openSandbox()
  expect(() => world.sandbox.setFaults({ hang: 7 })).toThrow('hang')
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
