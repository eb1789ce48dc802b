// gate-world.ts: single submissions through the thread that signs and sends, without a spool.

import { afterAll } from 'vitest'
import { createOutpost } from '../../src/delivery/transport/sender-worker.ts'
import type { Gate, Returned } from '../../src/delivery/transport/sender-worker.ts'
import type { ProviderOptions } from '../../src/delivery/delivery-options.ts'
import { routeOf } from '../../src/delivery/transport/transport-options.ts'
import type { BatchOperation } from '../../src/spool/spool.ts'
import { providerOptions } from './delivery-world.ts'

export const ids = ['11111111-1111-8111-a111-111111111111', '22222222-2222-8222-a222-22222222222a'] as const

/** What a service answers that takes both. */
export const taken = {
  requestId: 'r-1',
  responseCode: 200,
  accepted: ids,
  failed: [],
  summary: { total: 2, accepted: 2, failed: 0 },
}

const credentials = { accessKeyId: 'AKIDTEST', secretAccessKey: 'not a secret' }
export const batchText = `{"batchId":"b","timestamp":1,"data":[${ids.map((id) => `{"payloadId":"${id}"}`).join()}]}`
export const singleText = `{"payloadId":"${ids[0]}"}`

function contentOf(text: string) {
  const starts = Uint32Array.from(text.matchAll(/\{"payloadId"/g), ({ index }) => index)
  return {
    bodyBytes: text.length,
    writeBody(target: Buffer): Uint32Array {
      target.write(text, 'latin1')
      return starts
    },
  }
}

export type GateWorld = {
  /** One submission by a gate of its own. */
  submit(
    baseUrl: string,
    options?: Partial<ProviderOptions> & {
      turn?: BatchOperation
      stop?: AbortSignal
      env?: Record<string, string>
    },
  ): Promise<Returned>
  /** A gate for several. */
  open(baseUrl: string, options?: Partial<ProviderOptions>): Gate
  send(gate: Gate, options?: { turn?: BatchOperation; stop?: AbortSignal }): Promise<Returned>
}

/** To be called at the top of a test file: the thread lives as long as its tests. */
export function createGateWorld(): GateWorld {
  const outpost = createOutpost()
  afterAll(() => outpost.close())
  const world: GateWorld = {
    async submit(baseUrl, { env = {}, turn, stop, ...options } = {}) {
      const gate = outpost.open(routeOf(providerOptions(baseUrl, options), env))
      try {
        return await world.send(gate, { ...(turn && { turn }), ...(stop && { stop }) })
      } finally {
        await gate.close()
      }
    },
    open: (baseUrl, options = {}) => outpost.open(routeOf(providerOptions(baseUrl, options), {})),
    send(gate, { turn = 'batch', stop = new AbortController().signal } = {}) {
      const content = contentOf(turn === 'batch' ? batchText : singleText)
      const now = Date.now()
      return gate.submit({ turn, content, credentials, signingAt: now, startedAt: now, stop })
    },
  }
  return world
}
