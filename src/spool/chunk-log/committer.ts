// committer.ts: every write of the spool passes here, in order, one at a time. Owner of invariants 1 and 2.
//
//   parts    seals, settles and the like: all that wait go into the next write
//   groups   messages: the open group fills while a write runs. When it holds `groupBytesMax` it joins the
//            queue and a new group is opened. A write takes one group.
//
//   endMessage -> open group -> (queue) -> one atomic write, sync: true -> mark -> acks in order of arrival
//
// Numbers are assigned when a write is put together, not before. So the database always holds a prefix of
// what was numbered, whatever is lost. A failed write ends this committer: nothing of it is acknowledged,
// everybody who waits gets the fault, and the store is opened again (store-supervisor.ts).
//
// Bounds of messages that are not durable. What was read already is still taken.
//
//   busy        above `busyMessages` or `busyBytes`: ingest reads only a few messages from each connection
//               until the next commit. A new message waits for about two commits, however much others send
//   congested   above `uncommittedBytesMax`: ingest reads nothing

import type { Store, StoreOp } from '../../storage/storage.ts'
import type { Clock } from '../../std/clock.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import { createWriteWaits, WriteDeadline } from '../write-waits/write-waits.ts'
import type { Ack } from '../types.ts'

/** One contribution to a write. */
export type WritePart = {
  /** Called once, synchronously, when the write is put together. */
  prepare(ops: StoreOp[]): void
  /** Called once after the fsync, before any ack. */
  committed?(): void
}

/** Messages that become durable together. */
export type Group = WritePart & {
  /** Called once, before `prepare` and before the first message of the next group. */
  closed?(): void
  /** Bytes to write; 0 if all messages in it are duplicates or ignored. */
  bytes: number
  readonly acks: Ack[]
  /** Messages in it without a waiting ack (QoS 0). */
  unawaited: number
  /** Monotonic time of its first message. */
  openedMs: number
}

/** At this size a write starts at once: to wait for the end of the turn would leave the disk idle. */
const eagerBytes = 128 * 1024

export type CommitterOptions = {
  groupBytesMax: number
  busyMessages: number
  busyBytes: number
  uncommittedBytesMax: number
  /** How long anything may wait for others, so that they share a write; 0: nothing waits. */
  ackDelayMaxMs: number
  /** With so many messages a write waits no longer: they are a full batch. */
  group: { chunkPayloadsMax: number }
}

export type Committer<OpenGroup extends Group = Group> = {
  /** The group that takes messages in now. */
  open(): OpenGroup
  busy(): boolean
  congested(): boolean
  /** Number of writes that became durable. */
  writes(): number
  /** Grows with each group that became durable, also where there was nothing to write. */
  commits(): number
  /** It may wait for others for `waitMs`, within `ackDelayMaxMs`. */
  endMessage(ack: Ack | null, waitMs?: number): void
  /** Resolves after the fsync; rejects with the fault if the write failed. `waitMs` as with a message. */
  commit(part: WritePart, waitMs?: number): Promise<void>
  /**
   * Calls `look` when no write runs, so that database and memory agree. Resolves with its result, or with
   * null if `signal` aborts or the committer fails first.
   */
  betweenWrites<Seen>(look: () => Seen, signal: AbortSignal): Promise<Seen | null>
  /** Resolves when nothing waits, or at once after a failure. */
  idle(): Promise<void>
  /** Refuses everything from now on; everybody who waits gets `fault`. */
  fail(fault: GatewayError): void
}

type Pending = { part: WritePart; resolve: () => void; reject: (fault: GatewayError) => void }

export type CommitterDeps<OpenGroup extends Group> = {
  store: Store
  clock: Clock
  /** Counts the writes: its record is in each of them, and it is called after the fsync, before any ack. */
  mark: { prepare(ops: StoreOp[]): void; written(): void }
  makeGroup: () => OpenGroup
  explain: (error: unknown) => GatewayError
  /** After every commit, and when `busy` or `congested` changes. */
  changed: () => void
  /** The acks of a group were given; its first message has waited so long for that. */
  acked: (waitMs: number) => void
  /** `unawaited` messages were lost with the store. */
  failed: (fault: GatewayError, unawaited: number) => void
}

export function createCommitter<OpenGroup extends Group>(
  deps: CommitterDeps<OpenGroup>,
  options: CommitterOptions,
): Committer<OpenGroup> {
  const waits = createWriteWaits({ failed: () => fault !== null })
  const deadline = new WriteDeadline({ clock: deps.clock, passed: flush })
  let open = deps.makeGroup()
  let queue: OpenGroup[] = []
  let queuedBytes = 0
  let writingBytes = 0
  /** In the queue and in the running write. */
  let closedMessages = 0
  let pending: Pending[] = []
  let writing = false
  let scheduled = false
  let busy = false
  let congested = false
  let writes = 0
  let commits = 0
  let fault: GatewayError | null = null
  /** What the running write holds; a failure must reach these too. */
  let current: { parts: Pending[]; group: OpenGroup | null } = { parts: [], group: null }

  function endMessage(ack: Ack | null, waitMs = 0): void {
    if (fault !== null) {
      ack?.(fault)
      return
    }
    if (messagesOf(open) === 0) open.openedMs = deps.clock.monotonic()
    if (ack === null) open.unawaited += 1
    else open.acks.push(ack)
    const isFull = open.bytes >= eagerBytes || messagesOf(open) >= options.group.chunkPayloadsMax
    deadline.add(isFull ? 0 : Math.min(waitMs, options.ackDelayMaxMs))
    if (open.bytes >= options.groupBytesMax) queueGroup()
    updateCongestion()
    // With much to write, the disk starts at once and works while the rest of what arrived is mapped.
    if (!writing && open.bytes >= eagerBytes) flush()
    else schedule()
  }

  function queueGroup(): void {
    open.closed?.()
    queue.push(open)
    queuedBytes += open.bytes
    openNext()
  }

  function openNext(): void {
    closedMessages += messagesOf(open)
    open = deps.makeGroup()
  }

  function commit(part: WritePart, waitMs = 0): Promise<void> {
    if (fault !== null) return Promise.reject(fault)
    return new Promise((resolve, reject) => {
      pending.push({ part, resolve, reject })
      deadline.add(Math.min(waitMs, options.ackDelayMaxMs))
      schedule()
    })
  }

  /** The check phase follows all sockets of this turn: what arrived together is written together. */
  function schedule(): void {
    if (writing || scheduled || mayWait()) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
    })
  }

  function mayWait(): boolean {
    return queue.length === 0 && !waits.any() && deadline.waits()
  }

  function flush(): void {
    if (writing || fault !== null) return
    deadline.clear()
    waits.betweenWrites()
    const group = nextGroup()
    const parts = pending
    pending = []
    if (group === null && parts.length === 0) {
      waits.isIdle()
      return
    }
    const ops: StoreOp[] = []
    for (const { part } of parts) part.prepare(ops)
    group?.prepare(ops)
    current = { parts, group }
    if (ops.length === 0) {
      finish()
      return
    }
    deps.mark.prepare(ops)
    writing = true
    writingBytes = group?.bytes ?? 0
    // Never without sync: LevelDB rotates its log without fsync, so mixed writes could leave a hole instead
    // of a shorter tail after a power cut.
    deps.store.write(ops, { sync: true }).then(
      () => {
        writes += 1
        finish()
      },
      (error: unknown) => fail(deps.explain(error)),
    )
  }

  function nextGroup(): OpenGroup | null {
    const first = queue.shift()
    if (first !== undefined) {
      queuedBytes -= first.bytes
      // The open group follows; its deadline was cleared.
      deadline.add(0)
      return first
    }
    if (open.bytes === 0 && open.acks.length === 0 && open.unawaited === 0) return null
    const group = open
    group.closed?.()
    openNext()
    return group
  }

  function finish(): void {
    // The store may resolve after the committer was failed from outside: then no message may get a success.
    if (fault !== null) return
    const { parts, group } = current
    current = { parts: [], group: null }
    for (const { part } of parts) part.committed?.()
    group?.committed?.()
    if (writing) deps.mark.written()
    writing = false
    writingBytes = 0
    commits += 1
    if (group !== null) closedMessages -= messagesOf(group)
    // The device may forget the message once we ack, so this stays behind the write (invariant 1). One list
    // for the whole group keeps the order of arrival over all lanes and connections [MQTT-4.6.0-2].
    if (group !== null) {
      for (const ack of group.acks) ack(null)
      if (group.acks.length > 0) deps.acked(deps.clock.monotonic() - group.openedMs)
    }
    for (const { resolve } of parts) resolve()
    updateCongestion()
    deps.changed()
    if (!mayWait()) flush()
  }

  function fail(reason: GatewayError): void {
    if (fault !== null) return
    fault = reason
    deadline.clear()
    const parts = [...current.parts, ...pending]
    const groups = [...(current.group === null ? [] : [current.group]), ...queue, open]
    current = { parts: [], group: null }
    pending = []
    queue = []
    writing = false
    let unawaited = 0
    for (const group of groups) {
      unawaited += group.unawaited
      for (const ack of group.acks) ack(reason)
    }
    for (const { reject } of parts) reject(reason)
    waits.betweenWrites()
    waits.isIdle()
    deps.failed(reason, unawaited)
  }

  function updateCongestion(): void {
    const bytes = open.bytes + queuedBytes + writingBytes
    const isBusy = bytes > options.busyBytes || messagesOf(open) + closedMessages > options.busyMessages
    const isCongested = bytes > options.uncommittedBytesMax
    if (isBusy === busy && isCongested === congested) return
    busy = isBusy
    congested = isCongested
    deps.changed()
  }

  function betweenWrites<Seen>(look: () => Seen, signal: AbortSignal): Promise<Seen | null> {
    if (fault !== null || signal.aborted) return Promise.resolve(null)
    const seen = waits.look(look, signal)
    schedule()
    return seen
  }

  function idle(): Promise<void> {
    if (fault !== null) return Promise.resolve()
    const idle = waits.idle()
    schedule()
    return idle
  }

  return {
    open() {
      return open
    },
    busy() {
      return busy
    },
    congested() {
      return congested
    },
    writes() {
      return writes
    },
    commits() {
      return commits
    },
    endMessage,
    commit,
    betweenWrites,
    idle,
    fail,
  }
}

function messagesOf({ acks, unawaited }: Group): number {
  return acks.length + unawaited
}
