// transport-world.ts: single submissions through the thread that signs and sends, without a spool.

import { afterAll } from 'vitest'
import { createSenderWorker } from '../../src/delivery/transport/sender-worker.ts'
import type { Attempt, AttemptResult, Transport } from '../../src/delivery/transport/transport.ts'
import type { ProviderOptions } from '../../src/delivery/delivery-options.ts'
import { transportOptions } from '../../src/delivery/transport/transport-options.ts'
import type { BatchOperation } from '../../src/spool/spool.ts'
import { providerOptions } from './delivery-world.ts'

export const ids = ['11111111-1111-8111-a111-111111111111', '22222222-2222-8222-a222-22222222222a'] as const

/** The answer of a service that accepts both. */
export const acceptedBoth = {
  requestId: 'r-1',
  responseCode: 200,
  accepted: ids,
  failed: [],
  summary: { total: 2, accepted: 2, failed: 0 },
}

const credentials = { accessKeyId: 'AKIDTEST', secretAccessKey: 'not a secret' }
export const batchText = `{"batchId":"b","timestamp":1,"data":[${ids.map((id) => `{"payloadId":"${id}"}`).join()}]}`
export const singleText = `{"payloadId":"${ids[0]}"}`

export function contentOf(text: string) {
  const starts = Uint32Array.from(text.matchAll(/\{"payloadId"/g), ({ index }) => index)
  return {
    bodyBytes: text.length,
    writeBody(target: Buffer): Uint32Array {
      target.write(text, 'latin1')
      return starts
    },
  }
}

export type TransportWorld = {
  /** One submission by a transport of its own. */
  submit(
    baseUrl: string,
    options?: Partial<ProviderOptions> & {
      operation?: BatchOperation
      stop?: AbortSignal
      text?: string
      env?: Record<string, string>
    },
  ): Promise<AttemptResult>
  /** A transport for several. */
  open(baseUrl: string, options?: Partial<ProviderOptions>): Transport
  send(transport: Transport, options?: SendOptions): Promise<AttemptResult>
}

type SendOptions = {
  operation?: BatchOperation
  stop?: AbortSignal
  timeoutMs?: number
  /** The body; else that of `operation`. */
  text?: string
  credentials?: Attempt['credentials']
}

/** Call it at the top of a test file: the thread ends after its tests. */
export function createTransportWorld(): TransportWorld {
  const senderWorker = createSenderWorker()
  afterAll(() => senderWorker.close())
  const world: TransportWorld = {
    async submit(baseUrl, { env = {}, operation, stop, text, ...options } = {}) {
      const { timeoutMs } = options
      const transport = senderWorker.open(transportOptions(providerOptions(baseUrl, options), env))
      try {
        return await world.send(transport, {
          ...(operation && { operation }),
          ...(stop && { stop }),
          ...(text && { text }),
          ...(timeoutMs !== undefined && { timeoutMs }),
        })
      } finally {
        await transport.close()
      }
    },
    open: (baseUrl, options = {}) =>
      senderWorker.open(transportOptions(providerOptions(baseUrl, options), {})),
    send(transport, options = {}) {
      const { operation = 'batch', stop = new AbortController().signal, timeoutMs = 5000 } = options
      const content = contentOf(options.text ?? (operation === 'batch' ? batchText : singleText))
      const now = Date.now()
      return transport.submit({
        operation,
        content,
        credentials: options.credentials ?? credentials,
        signingAt: now,
        startedAt: now,
        stop,
        timeoutMs,
      })
    },
  }
  return world
}
