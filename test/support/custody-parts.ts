// custody-parts.ts: custody `delivered` by itself, with a clock that the test moves: real custody, feed, spool (on a memory
// store) and delivery, between a scripted engine and a scripted service. A message is a word, which says what becomes
// of it.

import { onTestFinished } from 'vitest'
import { exportLine, payloadLine } from '../../src/dead-letters/dead-letters.ts'
import type { DeadLetter } from '../../src/domain/dead-letter.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { ShelfName } from '../../src/domain/kept-store.ts'
import { createCustody, type Custody } from '../../src/ingest/custody/custody.ts'
import type { CustodyDelivery, CustodyDeps } from '../../src/ingest/custody/types.ts'
import { createMessageFeed } from '../../src/ingest/message-sources/message-feed.ts'
import type { MessageSource } from '../../src/ingest/message-sources/types.ts'
import type { Ack } from '../../src/spool/spool.ts'
import { createDeliveryWorld, type DeliveryWorld } from './delivery-world.ts'
import { createScriptedEngine, type ScriptedEngine } from './scripted-engine.ts'
import { deadLetterNamed, keptNamed, payloadNamed } from './spool-world.ts'

export type CustodyParts = DeliveryWorld & {
  engine: ScriptedEngine
  source: MessageSource
  custody: Custody
  custodyEvents: readonly GatewayEvent[]
  /** What the mapping says of its open records; a test may change it. */
  records: { openParts: number; openMsMax: number }
  /**
   * Publishes words: `dead NAME` becomes a dead letter (`dead NAME BYTES` a large one), `keep SHELF NAME` a message on a shelf, `two A B` two
   * payloads, `for PROVIDER NAME` one of that provider, `drop` nothing, and any other word a payload of that name.
   */
  words(...words: readonly string[]): void
  /** Moves the clock until `holds`, at most for `withinMs`. */
  passUntil(holds: () => boolean, withinMs?: number): Promise<void>
}

export type CustodyPartsOptions = NonNullable<Parameters<typeof createDeliveryWorld>[0]> & {
  parkForMs?: number
  deps?: Partial<CustodyDeps>
}

export async function createCustodyParts(options: CustodyPartsOptions = {}): Promise<CustodyParts> {
  const { parkForMs = 600_000, deps = {} } = options
  const engine = createScriptedEngine({ partitions: 1 })
  const world = await createDeliveryWorld(options)
  const { spool, clock, delivery } = world
  const custodyEvents: GatewayEvent[] = []
  const records = { openParts: 0, openMsMax: 0 }
  const real: CustodyDelivery = {
    providers: delivery.providers,
    delivered: () => delivery.counters().delivered,
    ...delivery.returns,
  }
  let copied: string | null = null
  const custody = createCustody(
    { clock, emit: (event) => void custodyEvents.push(event) },
    {
      spool,
      delivery: real,
      records: () => records,
      copied: { read: async () => copied, write: async (id) => void (copied = id) },
      releaseAgain: () => undefined,
      lineOf: exportLine,
      heldLineOf: payloadLine,
      ...deps,
    },
    { parkAfterMs: 60_000, parkForMs, member: 'gw-1' },
  )
  const source = engine.join()
  const feed = createMessageFeed(
    {
      intake: {
        accept: (message, ack) => accept(message.bytes.toString(), ack),
        connectionEnded: () => undefined,
        readingPaused: () => false,
        pausesSender: () => false,
      },
      spool,
      clock,
      limits: { openBridgeBudget: () => null },
      custody,
    },
    source,
  )
  custody.start([feed.custody], feed.update)
  feed.start()
  feed.update()
  onTestFinished(async () => {
    custody.close()
    await world.end()
  })

  function accept(text: string, ack: Ack | null): void {
    const [word = '', ...names] = text.split(' ')
    if (word === 'dead') spool.addDeadLetter(messageLetter(names[0]!, Number(names[1] ?? 0)))
    else if (word === 'keep')
      spool.keepMessage(keptNamed(names[1]!, { shelf: names[0] as ShelfName }).message)
    else if (word === 'two') for (const name of names) spool.append(payloadNamed(name))
    else if (word === 'for') spool.append(payloadNamed(names[1]!, { provider: names[0]! }))
    else if (word !== 'drop') spool.append(payloadNamed(word))
    spool.endMessage(ack)
  }

  return Object.assign(world, {
    engine,
    source,
    custody,
    custodyEvents,
    records,
    words(...words: readonly string[]) {
      for (const word of words) engine.publish('t', word)
    },
    async passUntil(holds: () => boolean, withinMs = 3_600_000) {
      const untilMs = clock.monotonic() + withinMs
      while (!holds()) {
        if (clock.monotonic() > untilMs)
          throw new Error(`not within ${withinMs} ms: ${JSON.stringify(custody.view())}`)
        await world.pass(100)
      }
    },
  })
}

function messageLetter(name: string, padding: number): DeadLetter {
  const { envelope } = keptNamed(name, { padding }).message
  return { ...deadLetterNamed(name).deadLetter, envelope }
}
