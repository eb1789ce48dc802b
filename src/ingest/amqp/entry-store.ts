// entry-store.ts: puts entries of custody into queues of RabbitMQ, over a connection of its own, with
// publisher confirms. Of a call that is not confirmed in full nothing is known: it is made again with the
// same entries.

import type { Clock } from '../../std/clock.ts'
import type { SourceCustody } from '../message-sources/types.ts'
import type { EngineAlarms } from './engine-alarms.ts'
import { createConfirmedPublisher } from './confirmed-publisher.ts'
import { deadQueue, parkedQueue } from './queue-names.ts'
import type { AmqpCredentials, AmqpOptions } from './types.ts'

export type EntryStore = {
  start(): void
  store: SourceCustody['store']
  close(): Promise<void>
}

type Deps = {
  clock: Clock
  random: () => number
  credentials: AmqpCredentials
  alarms: EngineAlarms
  queueMissing: (queue: string | null) => void
}

/** A call, and how many of its entries are not confirmed. */
type Call = { left: number; resolve: () => void; reject: (error: Error) => void }

export function createEntryStore(deps: Deps, options: AmqpOptions): EntryStore {
  /** In the order of publishing. The caller has few at a time. */
  let calls: Call[] = []
  let lastFault = 'The connection to RabbitMQ is not open yet.'
  const publisher = createConfirmedPublisher(
    {
      ...deps,
      opened: () => undefined,
      confirmed,
      failed({ reason, detail }) {
        lastFault = detail
        if (reason === 'queue_missing') deps.queueMissing(null)
        const failed = calls
        calls = []
        for (const { reject } of failed) reject(new Error(detail))
      },
    },
    options,
    `${options.member} store`,
  )

  function confirmed(count: number): void {
    let rest = count
    while (rest > 0) {
      const call = calls[0]
      if (call === undefined) return
      const now = Math.min(rest, call.left)
      call.left -= now
      rest -= now
      if (call.left > 0) return
      calls.shift()
      call.resolve()
    }
  }

  const store: SourceCustody['store'] = (queue, entries, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (signal.aborted) reject(signal.reason as Error)
    else if (!publisher.isOpen()) reject(new Error(lastFault))
    else if (entries.length === 0) resolve()
    else {
      const onAbort = () => reject(signal.reason as Error)
      signal.addEventListener('abort', onAbort, { once: true })
      const ended = () => signal.removeEventListener('abort', onAbort)
      // Its confirms are still counted after an abort.
      calls.push({
        left: entries.length,
        resolve: () => (ended(), resolve()),
        reject: (error) => (ended(), reject(error)),
      })
      const name = queue === 'parked' ? parkedQueue(options.prefix) : deadQueue(options.prefix)
      for (const { headers, body } of entries) publisher.publish(name, body, { ...headers })
    }
    return promise
  }

  return { start: publisher.start, store, close: publisher.close }
}
