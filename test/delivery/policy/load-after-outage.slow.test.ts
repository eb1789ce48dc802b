// A thousand gateways and one service that was down: their drain must not overload it again. The parts that
// decide when a request starts (endpoint, concurrency) are real, one set for each gateway. The service and
// time are simulated.

import { describe, expect, test } from 'vitest'
import { createConcurrency } from '../../../src/delivery/pacing/concurrency.ts'
import { createEndpoint } from '../../../src/delivery/policy/endpoint.ts'
import type { Pass } from '../../../src/delivery/policy/endpoint.ts'
import { defaultBackoff } from '../../../src/delivery/delivery-options.ts'
import { defaultProvider } from '../../../src/domain/ids.ts'
import type { BatchId } from '../../../src/domain/ids.ts'
import { createFakeClock } from '../../support/fake-clock.ts'
import { createRandom } from '../../support/random.ts'

const gateways = 1000
const outageMs = 15 * 60_000
const answerMs = 200
const windowMs = 5000

type Options = { backlog: number; seed: number }

/** When each request reached the service, in ms after it came back. */
async function play({ backlog, seed }: Options): Promise<number[]> {
  const clock = createFakeClock()
  const chance = createRandom(seed)
  const startMs = clock.monotonic()
  const requests: number[] = []
  let batches = 0

  function gateway(): void {
    const endpoint = createEndpoint(
      { clock, random: () => chance.next(), emit: () => undefined },
      { provider: defaultProvider, backoff: defaultBackoff },
    )
    const concurrency = createConcurrency({ max: 4 })
    let left = backlog
    let running = 0

    function pump(): void {
      while (left > running && running < concurrency.limit()) {
        const pass = endpoint.enter()
        if (pass === null) break
        send(pass)
      }
      const opensAtMs = endpoint.opensAt()
      if (running === 0 && left > 0 && opensAtMs !== null)
        clock.after(Math.max(1, opensAtMs - clock.monotonic()), pump)
    }

    function send(pass: Pass): void {
      running += 1
      const began = concurrency.started()
      const sentMs = clock.monotonic() - startMs
      if (sentMs >= outageMs) requests.push(sentMs - outageMs)
      clock.after(answerMs, () => {
        running -= 1
        const before = endpoint.view().state
        if (sentMs >= outageMs) {
          left -= 1
          concurrency.succeeded()
          endpoint.leave(pass, { kind: 'success' })
        } else {
          concurrency.failed(began)
          const batchId = String((batches += 1)) as BatchId
          endpoint.leave(pass, {
            kind: 'failure',
            batchId,
            why: '',
            requestId: null,
            retryAfterMs: null,
            alone: false,
          })
        }
        if (before === 'available' && endpoint.view().state !== 'available') concurrency.reset()
        pump()
      })
    }

    // The gateways do not start at the same moment.
    clock.after(Math.floor(chance.next() * 60_000), pump)
  }

  for (let count = 0; count < gateways; count += 1) gateway()
  for (let nextMs = clock.nextIn(); nextMs !== null; nextMs = clock.nextIn()) await clock.advance(nextMs)
  return requests
}

describe('a thousand gateways after an outage', () => {
  test.each([
    [1, 1],
    [40, 3],
  ])(
    'with %i batches each never send more than three times the mean in any 5 s (seed %i)',
    async (backlog, seed) => {
      const requests = (await play({ backlog, seed })).toSorted((a, b) => a - b)
      expect(requests).toHaveLength(gateways * backlog)
      const lastMs = requests.at(-1) ?? 0
      const mean = (requests.length / Math.max(lastMs, windowMs)) * windowMs
      let most = 0
      let first = 0
      for (const [index, atMs] of requests.entries()) {
        while ((requests[first] ?? 0) <= atMs - windowMs) first += 1
        most = Math.max(most, index - first + 1)
      }
      expect(most / mean).toBeLessThanOrEqual(3)
    },
  )
})
