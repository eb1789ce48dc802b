// scripted-engine.ts: a message engine in memory, as RabbitMQ and JetStream behave towards a source: partitions that one
// member has at a time, a queue of parked entries, copies of dead letters, redelivery of what was not acknowledged. It
// outlives its members.

import { randomUUID } from 'node:crypto'
import type {
  CustodyQueue,
  LinkView,
  MessageFeed,
  MessageSource,
  Partition,
  SourceMessage,
  StoredEntry,
} from '../../src/ingest/message-sources/types.ts'
import { emptyMessage } from '../../src/ingest/message-sources/source-message.ts'

type Stored = { id: string; topic: string; bytes: Buffer; deliveries: number; isPurged?: boolean }

type Member = {
  source: MessageSource
  feed: MessageFeed | null
  wanted: number
  isOpen: boolean
  taken: Map<string, Taken>
}

/** A partition as a member has it: what it took and did not acknowledge, in order. */
type Taken = { partition: Partition; nextTag: number; unacked: { tag: number; message: Stored }[] }

export type ScriptedEngine = {
  publish(topic: string, text: string): void
  /** A gateway joins, and gets all partitions. */
  join(): MessageSource
  /** Its connection is cut: what it did not acknowledge is delivered again, to the next member. */
  leave(source: MessageSource): void
  /** It is stopped: no acknowledgement arrives, and what it has none for is delivered again after `up`. */
  down(): void
  up(): void
  /** Forgets the messages that members hold and those that wait, as a purge or a limit does. */
  purge(): void
  /** Refuses to confirm entries for these queues. */
  refuse(...queues: CustodyQueue[]): void
  readonly parked: readonly Stored[]
  readonly dead: readonly string[]
  /** Messages that are neither acknowledged nor with a member. */
  ready(): number
  /** Since the start. */
  readonly counts: { acked: number; redelivered: number }
  /** Puts a parked entry into the queue. */
  park(text: string): void
  /** Called when entries are stored, before they are confirmed; a test may throw. */
  onConfirm: (queue: CustodyQueue) => void
}

const parkedName = 'fleet.parked'

const link: LinkView = {
  clientId: 'gw-1',
  state: 'connected',
  since: 0,
  sinceMs: 0,
  sessionPresent: null,
  losses: 0,
  lastFault: null,
  lastAct: null,
  isPausedLong: false,
  messages: 0,
  lastMessageMs: null,
}

export function createScriptedEngine({ partitions = 2, windowMax = 100 } = {}): ScriptedEngine {
  const names = Array.from({ length: partitions }, (_, index) => `fleet.${index}`)
  const queues = new Map<string, Stored[]>([...names, parkedName].map((name) => [name, []]))
  const dead: string[] = []
  const refused = new Set<CustodyQueue>()
  const counts = { acked: 0, redelivered: 0 }
  let member: Member | null = null
  let isPumping = false
  let isDown = false

  const engine: ScriptedEngine = {
    publish(topic, text) {
      let hash = 0
      for (const letter of topic) hash = (hash * 31 + letter.charCodeAt(0)) % 65_521
      const message = { id: randomUUID(), topic, bytes: Buffer.from(text), deliveries: 0 }
      queues.get(names[hash % partitions]!)!.push(message)
      pump()
    },
    join,
    leave(source) {
      if (member?.source === source) cut(member)
    },
    down() {
      isDown = true
      if (member !== null) release(member)
    },
    up() {
      isDown = false
      if (member?.feed) for (const queue of queues.keys()) assign(member, queue)
      pump()
    },
    purge() {
      for (const name of names) {
        queues.get(name)!.length = 0
        for (const { message } of member?.taken.get(name)?.unacked ?? []) message.isPurged = true
      }
    },
    refuse(...which) {
      refused.clear()
      for (const queue of which) refused.add(queue)
    },
    get parked() {
      return [
        ...queues.get(parkedName)!,
        ...(member?.taken.get(parkedName)?.unacked ?? []).map((one) => one.message),
      ]
    },
    dead,
    ready: () => names.reduce((sum, name) => sum + queues.get(name)!.length, 0),
    counts,
    park(text) {
      queues.get(parkedName)!.push({ id: randomUUID(), topic: '', bytes: Buffer.from(text), deliveries: 0 })
      pump()
    },
    onConfirm: () => undefined,
  }
  return engine

  function join(): MessageSource {
    if (member !== null) cut(member)
    const source: MessageSource = {
      name: 'engine',
      kind: 'amqp',
      traits: { ackKind: 'up_to', partitioned: true, windowMax, holdMs: null, redelivers: 'on_close' },
      start(feed) {
        own.feed = feed
        if (isDown) return
        for (const queue of queues.keys()) assign(own, queue)
        pump()
      },
      want(messages) {
        own.wanted = messages
        pump()
      },
      acknowledge(partition, position) {
        const taken = own.taken.get(partition.label)
        if (taken?.partition !== partition) throw new Error('an acknowledgement of another epoch')
        const index = taken.unacked.findIndex(({ tag }) => tag > position)
        const gone = taken.unacked.splice(0, index < 0 ? taken.unacked.length : index)
        if (gone.length === 0) throw new Error(`nothing is acknowledged by ${position}`)
        if (partition.label !== parkedName) counts.acked += gone.length
        pump()
      },
      flush: () => undefined,
      giveBack(partition) {
        const taken = own.taken.get(partition.label)
        if (taken?.partition !== partition) return
        requeue(partition.label, taken.unacked)
        if (own.isOpen) assign(own, partition.label)
        pump()
      },
      reconnect: () => undefined,
      custody: { store },
      release: () => Promise.resolve(void (own.wanted = 0)),
      close: () => Promise.resolve(cut(own)),
      states: () => [],
      view: () => ({
        url: null,
        links: [{ ...link, state: isDown ? 'waiting' : 'connected' }],
        lag: null,
        lost: 0,
        retainedIgnored: 0,
        partitions: [],
      }),
    }
    const own: Member = { source, feed: null, wanted: 0, isOpen: true, taken: new Map() }
    member = own
    return source

    async function store(queue: CustodyQueue, entries: readonly StoredEntry[]): Promise<void> {
      await new Promise(setImmediate)
      if (isDown || !own.isOpen || refused.has(queue)) throw new Error(`the engine refuses ${queue}`)
      for (const { body } of entries) {
        if (queue === 'dead') dead.push(body.toString())
        else
          queues
            .get(parkedName)!
            .push({ id: randomUUID(), topic: '', bytes: Buffer.from(body), deliveries: 0 })
      }
      engine.onConfirm(queue)
      pump()
    }
  }

  function assign(own: Member, queue: string): void {
    const partition = own.feed!.assign(queue, undefined, queue === parkedName ? 'parked' : 'messages')
    own.taken.set(queue, { partition, nextTag: 1, unacked: [] })
  }

  function requeue(queue: string, unacked: readonly { message: Stored }[]): void {
    const all = unacked.map(({ message }) => message)
    queues.get(queue)!.unshift(...all.filter(({ isPurged }) => isPurged !== true))
  }

  function cut(own: Member): void {
    if (!own.isOpen) return
    own.isOpen = false
    release(own)
    if (member === own) member = null
  }

  function release(own: Member): void {
    for (const [queue, { partition, unacked }] of own.taken) {
      requeue(queue, unacked)
      if (partition.assigned) own.feed?.revoke(partition)
    }
    own.taken.clear()
  }

  function pump(): void {
    if (isPumping) return
    isPumping = true
    setImmediate(() => {
      isPumping = false
      if (isDown || member === null || member.feed === null || member.wanted === 0) return
      for (const [queue, taken] of member.taken) deliver(member.feed, queues.get(queue)!, taken)
    })
  }

  function deliver(feed: MessageFeed, queue: Stored[], taken: Taken): void {
    while (queue.length > 0 && taken.partition.assigned && feed.room(taken.partition) > 0) {
      const message = queue.shift()!
      const tag = taken.nextTag
      taken.nextTag += 1
      taken.unacked.push({ tag, message })
      if (message.deliveries > 0) counts.redelivered += 1
      message.deliveries += 1
      feed.take(taken.partition, tag, sourceMessage(message))
    }
  }
}

function sourceMessage({ topic, bytes, deliveries }: Stored): SourceMessage {
  return { ...emptyMessage(), topic, bytes, redelivered: deliveries > 1 }
}
