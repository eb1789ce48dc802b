// committer.ts: every write of the spool passes here, in order, one at a time. Owner of invariants 1 and 2.
//
//   control  seals and settles: all that wait go into the next write
//   groups   messages: the open group fills while a write runs; when it holds `groupBytesMax` it joins the
//            waiting line and a new one is opened; a write takes one group
//
//   endMessage -> open group -> (waiting line) -> one atomic write, sync: true -> acks in arrival order
//
// Numbers are given when a write is put together, not before: what stands in the database is always a
// prefix of what was numbered, whatever is lost. A write that fails ends this committer for good: nothing of
// it is acknowledged, everybody who waits gets the fault, and the store is opened anew (see spool.ts).
//
// Bound: `uncommittedBytesMax` of messages. At the bound `congested` turns true and ingest stops reading
// from its sockets; what was read already is still taken, so the bound is exceeded by one read per socket.

import type { Store, StoreOp } from '../../storage/storage.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import type { Ack } from '../spool.ts'

/** One contribution to a write. */
export type Part = {
  /** Called once, synchronously, when the write is put together. */
  prepare(ops: StoreOp[]): void
  /** Called once after the fsync, before any ack. */
  committed(): void
}

/** Messages that become durable together. */
export type Group = Part & {
  readonly bytes: number
  /** Nothing to write: copies and ignored messages only. */
  readonly empty: boolean
  acks: Ack[]
  /** Messages in it for which nobody waits (QoS 0). */
  unawaited: number
}

/** A write that waits for the end of the turn any longer would leave the disk idle meanwhile. */
const eagerBytes = 128 * 1024

export type CommitterOptions = { groupBytesMax: number; uncommittedBytesMax: number }

export type Committer = {
  /** The group that takes messages in now. */
  readonly open: Group
  readonly congested: boolean
  readonly uncommittedBytes: number
  /** Counts the writes that became durable. */
  readonly writes: number
  endMessage(ack: Ack | null): void
  /** Resolves after the fsync; rejects with the fault when the write failed. */
  control(part: Part): Promise<void>
  /** Calls `look` when no write runs, so that database and memory agree; never after a failure. */
  quiet(look: () => void): void
  /** Resolves when nothing waits any more, or at once after a failure. */
  idle(): Promise<void>
  /** Refuses everything from now on; whoever waits gets `fault`. */
  fail(fault: GatewayError): void
}

type Control = { part: Part; resolve: () => void; reject: (fault: GatewayError) => void }

export type CommitterDeps = {
  store: Store
  makeGroup: () => Group
  explain: (error: unknown) => GatewayError
  /** After every durable write, and when `congested` changes. */
  changed: () => void
  failed: (fault: GatewayError, unawaited: number) => void
}

export function createCommitter(deps: CommitterDeps, options: CommitterOptions): Committer {
  let open = deps.makeGroup()
  let waiting: Group[] = []
  let waitingBytes = 0
  let writingBytes = 0
  let control: Control[] = []
  let writing = false
  let scheduled = false
  let congested = false
  let writes = 0
  let fault: GatewayError | null = null
  let idleWaiters: (() => void)[] = []
  let lookers: (() => void)[] = []
  /** What the write that runs now has taken; a failure must reach them too. */
  let taken: { controls: Control[]; group: Group | null } = { controls: [], group: null }

  function endMessage(ack: Ack | null): void {
    if (fault !== null) {
      ack?.(fault)
      return
    }
    if (ack === null) open.unawaited += 1
    else open.acks.push(ack)
    if (open.bytes >= options.groupBytesMax) rotate()
    judgeCongestion()
    // With much to write, the disk begins at once and works while the rest of what arrived is mapped.
    if (!writing && open.bytes >= eagerBytes) flush()
    else schedule()
  }

  function rotate(): void {
    waiting.push(open)
    waitingBytes += open.bytes
    open = deps.makeGroup()
  }

  function controlWrite(part: Part): Promise<void> {
    if (fault !== null) return Promise.reject(fault)
    return new Promise((resolve, reject) => {
      control.push({ part, resolve, reject })
      schedule()
    })
  }

  /** The check phase comes after all sockets of this turn were read: what arrived together is written together. */
  function schedule(): void {
    if (writing || scheduled) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      flush()
    })
  }

  function flush(): void {
    if (writing || fault !== null) return
    const looking = lookers
    lookers = []
    for (const look of looking) look()
    const group = takeGroup()
    const controls = control
    control = []
    if (group === null && controls.length === 0) {
      settleIdle()
      return
    }
    const ops: StoreOp[] = []
    for (const { part } of controls) part.prepare(ops)
    group?.prepare(ops)
    taken = { controls, group }
    if (ops.length === 0) {
      finish()
      return
    }
    writing = true
    writingBytes = group?.bytes ?? 0
    // LevelDB must not be asked for a write without sync here: it rotates its log without fsync, so mixed
    // writes could leave a hole instead of a shorter tail when the power goes.
    deps.store.write(ops, { sync: true }).then(
      () => {
        writes += 1
        finish()
      },
      (error: unknown) => fail(deps.explain(error)),
    )
  }

  function takeGroup(): Group | null {
    const first = waiting.shift()
    if (first !== undefined) {
      waitingBytes -= first.bytes
      return first
    }
    if (open.empty && open.acks.length === 0 && open.unawaited === 0) return null
    const group = open
    open = deps.makeGroup()
    return group
  }

  function finish(): void {
    // The store may resolve after somebody failed the committer: then nobody may hear of success.
    if (fault !== null) return
    const { controls, group } = taken
    taken = { controls: [], group: null }
    writing = false
    writingBytes = 0
    for (const { part } of controls) part.committed()
    group?.committed()
    // The device may forget the message once we ack, so this stays behind the write (invariant 1). One list
    // for the whole group keeps arrival order over all lanes and connections [MQTT-4.6.0-2].
    if (group !== null) for (const ack of group.acks) ack(null)
    for (const { resolve } of controls) resolve()
    judgeCongestion()
    deps.changed()
    flush()
  }

  function fail(reason: GatewayError): void {
    if (fault !== null) return
    fault = reason
    const controls = [...taken.controls, ...control]
    const groups = [...(taken.group === null ? [] : [taken.group]), ...waiting, open]
    taken = { controls: [], group: null }
    control = []
    waiting = []
    writing = false
    let unawaited = 0
    for (const group of groups) {
      unawaited += group.unawaited
      for (const ack of group.acks) ack(reason)
    }
    for (const { reject } of controls) reject(reason)
    settleIdle()
    deps.failed(reason, unawaited)
  }

  function uncommittedBytes(): number {
    return open.bytes + waitingBytes + writingBytes
  }

  function judgeCongestion(): void {
    const now = uncommittedBytes() > options.uncommittedBytesMax
    if (now === congested) return
    congested = now
    deps.changed()
  }

  function settleIdle(): void {
    const waiters = idleWaiters
    idleWaiters = []
    for (const resolve of waiters) resolve()
  }

  function quiet(look: () => void): void {
    lookers.push(look)
    schedule()
  }

  function idle(): Promise<void> {
    if (fault !== null) return Promise.resolve()
    return new Promise((resolve) => {
      idleWaiters.push(resolve)
      schedule()
    })
  }

  return {
    get open() {
      return open
    },
    get congested() {
      return congested
    },
    get uncommittedBytes() {
      return uncommittedBytes()
    },
    get writes() {
      return writes
    },
    endMessage,
    control: controlWrite,
    quiet,
    idle,
    fail,
  }
}
