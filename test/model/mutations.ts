// mutations.ts: mistakes that the model must notice. Each one replaces a named function of the spool while
// the process runs (run.ts does it), by a function that uses the original one wrongly. The types come from
// the sources, so a change there that a mutation does not follow is a type error.

import { setTimeout as later } from 'node:timers/promises'
import type { reseal, setClaimHeld, setClaimOperation } from '../../src/spool/batches/reseal.ts'
import type { seal } from '../../src/spool/batches/seal.ts'
import type { settle } from '../../src/spool/batches/settle.ts'
import type { addClaim } from '../../src/spool/batches/claim.ts'
import { readChunk } from '../../src/spool/chunk-log/chunk-codec.ts'
import type { createCommitter, WritePart } from '../../src/spool/chunk-log/committer.ts'
import type { createGroup } from '../../src/spool/chunk-log/group.ts'
import { seqKey, seqOf, seqRange, table } from '../../src/spool/chunk-log/key-layout.ts'
import type { Lane } from '../../src/spool/chunk-log/lane.ts'
import type { deleteClaim } from '../../src/spool/chunk-log/lane-claims.ts'
import type { rotate } from '../../src/spool/chunk-log/lane-rotation.ts'
import { putReceipt } from '../../src/spool/chunk-log/receipt-queue.ts'
import type { findLanes } from '../../src/spool/recovery/lane-recovery.ts'
import type { recoverReceipts } from '../../src/spool/recovery/receipt-recovery.ts'
import type { createReservations } from '../../src/spool/kept/entry-reservations.ts'
import type { createExchange } from '../../src/spool/kept/exchange.ts'
import type { addLateRecord } from '../../src/spool/kept/late-records.ts'
import type { recoverShelves } from '../../src/spool/kept/message-shelf.ts'
import type { createMessageIntake } from '../../src/spool/message-intake.ts'
import type { Session, SpoolState, StoredEntry } from '../../src/spool/session-state.ts'
import type { StoreOp } from '../../src/storage/storage.ts'

type AnyFunction = (...args: never[]) => unknown

export type Mutation = {
  mistake: string
  /** The function that is replaced, below src/spool. */
  file: string
  name: string
  wrap: (original: AnyFunction) => AnyFunction
  /** The rule that the model must name. */
  noticed: RegExp
  /** Where the first histories do not notice it: one a little before the first that does. */
  firstSeed?: number
}

function mutation<Function extends AnyFunction>(
  what: Omit<Mutation, 'wrap'> & { wrap: (original: Function) => Function },
): Mutation {
  return { ...what, wrap: (original) => what.wrap(original as Function) }
}

/** The same object with other properties; everything else goes to `target`, also what is written. */
function overriding<Target extends object>(target: Target, changes: Partial<Target>): Target {
  return new Proxy(target, {
    get: (from, key) =>
      Object.hasOwn(changes, key) ? Reflect.get(changes, key) : (Reflect.get(from, key) as unknown),
    set: (to, key, value) => Reflect.set(to, key, value),
  })
}

function withCommit(session: Session, commit: (part: WritePart) => Promise<void>): Session {
  return overriding(session, { committer: overriding(session.committer, { commit }) })
}

/** A session whose commits resolve before their write. */
function impatient(session: Session): Session {
  return withCommit(session, async (part) => {
    void session.committer.commit(part).catch(() => undefined)
  })
}

const isIn = (op: StoreOp, kind: number) => op.key[0] === kind

export const mutations: readonly Mutation[] = [
  mutation<typeof createCommitter>({
    mistake: 'writes without sync',
    file: 'chunk-log/committer.ts',
    name: 'createCommitter',
    wrap: (original) => (deps, options) => {
      const write = (ops: readonly StoreOp[]) => deps.store.write(ops, { sync: false })
      return original({ ...deps, store: { ...deps.store, write } }, options)
    },
    noticed: /was acknowledged and is nowhere|is not durable|nothing is missing/,
  }),
  mutation<typeof createCommitter>({
    mistake: 'acknowledges before the commit',
    file: 'chunk-log/committer.ts',
    name: 'createCommitter',
    wrap: (original) => (deps, options) => {
      const committer = original(deps, options)
      return overriding(committer, {
        endMessage(ack) {
          committer.endMessage(null)
          ack?.(null)
        },
      })
    },
    noticed: /was acknowledged and is nowhere/,
  }),
  mutation<typeof seal>({
    mistake: 'hands a batch out before its seal is durable',
    file: 'batches/seal.ts',
    name: 'seal',
    wrap: (original) => (session, lane, limits) => original(impatient(session), lane, limits),
    noticed: /may be sent and is not durable/,
  }),
  mutation<typeof seal>({
    mistake: 'seals a lane while another seal of it cuts a chunk',
    file: 'batches/seal.ts',
    name: 'seal',
    wrap: (original) => (session, lane, limits) => {
      lane.sealing = Promise.resolve()
      return original(session, lane, limits)
    },
    noticed: /has a hole/,
  }),
  mutation<typeof settle>({
    mistake: 'settles in two writes',
    file: 'batches/settle.ts',
    name: 'settle',
    wrap: (original) => (session, claimed, what) => {
      const { lane, claim } = claimed
      const { committer } = session
      const commit = async (part: WritePart) => {
        await committer.commit({
          prepare(ops) {
            for (const { firstSeq } of claim.refs ?? [])
              ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, firstSeq) })
          },
        })
        await committer.commit(part)
      }
      return original(withCommit(session, commit), claimed, what)
    },
    noticed: /was acknowledged and is nowhere|nothing was damaged|has a hole at/,
  }),
  mutation<(state: SpoolState, lane: Lane) => Promise<void>>({
    mistake: 'gives numbers again after an out-of-order settle',
    file: 'recovery/recovery.ts',
    name: 'finishLane',
    wrap: (original) => async (state, lane) => {
      let end = 0
      const range = seqRange(table.chunks, lane.id, 0, Number.MAX_SAFE_INTEGER)
      for await (const page of state.store.pages(range))
        for (const [key, value] of page) end = seqOf(key) + (readChunk(value)?.count ?? 0)
      lane.nextSeq = end
      lane.sealSeq = Math.min(end, lane.sealSeq)
      await original(state, lane)
    },
    noticed: /number \d+:\d+ was given to|conservation/,
  }),
  mutation<(state: SpoolState) => Promise<void>>({
    mistake: 'forgets the dedup window at a restart',
    file: 'recovery/recovery.ts',
    name: 'recoverWindow',
    wrap: () => async () => {},
    noticed: /is in \d places|was accepted under|is in \d chunks/,
  }),
  mutation<typeof createExchange>({
    mistake: 'exchanges in two writes',
    file: 'kept/exchange.ts',
    name: 'createExchange',
    wrap: (original) => (session) => {
      const exchange = original(session)
      return async (whole) => {
        if (whole.take.length > 0)
          await exchange({ take: whole.take, payloads: [], deadLetters: [], stateChanges: [] })
        await exchange({ ...whole, take: [] })
      }
    },
    noticed: /was acknowledged and is nowhere/,
  }),
  mutation<typeof createMessageIntake>({
    mistake: 'writes state beside the group of its message',
    file: 'message-intake.ts',
    name: 'createMessageIntake',
    wrap: (original) => (open, heldKeys, ended) => {
      const intake = original(open, heldKeys, ended)
      return {
        ...intake,
        putState(key, value) {
          const session = open.current()
          setImmediate(() =>
            setImmediate(() => {
              if (open.peek() !== session) return
              intake.putState(key, value)
              intake.endMessage(null)
            }),
          )
        },
      }
    },
    noticed: /was acknowledged and is nowhere/,
  }),
  mutation<typeof createExchange>({
    mistake: 'lets messages overtake an exchange that changes state',
    file: 'kept/exchange.ts',
    name: 'createExchange',
    wrap: (original) => (session) => {
      const exchange = original(session)
      return async (whole) => {
        await later(0)
        await exchange(whole)
      }
    },
    noticed: /was acknowledged and is nowhere|is in \d places/,
  }),
  mutation<typeof addLateRecord>({
    mistake: 'forgets what only the oldest record of late entries has',
    file: 'kept/late-records.ts',
    name: 'addLateRecord',
    wrap: (original) => (late, entries, replaced) => ({ ...original(late, entries, replaced), own: [] }),
    noticed: /was acknowledged and is nowhere/,
  }),
  mutation<typeof addLateRecord>({
    mistake: 'keeps late entries in force that were put or deleted since',
    file: 'kept/late-records.ts',
    name: 'addLateRecord',
    wrap: (original) => (late, entries) => original(late, entries, new Set()),
    noticed: /was acknowledged and is nowhere|is in \d places|parts are in an empty state/,
  }),
  mutation<typeof createReservations>({
    mistake: 'lets two exchanges take the same message',
    file: 'kept/entry-reservations.ts',
    name: 'createReservations',
    wrap: (original) => () => {
      const reservations = original()
      const known = new Map<string, StoredEntry>()
      return {
        ...reservations,
        register(id, entry) {
          known.set(id, entry)
          return reservations.register(id, entry)
        },
        locate(ids, lookedUp) {
          const entries = ids.map((id) => known.get(id) ?? lookedUp.get(id))
          return entries.every((entry) => entry !== undefined) ? entries : null
        },
      }
    },
    noticed: /is in \d (places|chunks)|was accepted under|conservation/,
  }),
  mutation<typeof recoverShelves>({
    mistake: 'forgets at a restart that a kept message was taken',
    file: 'kept/message-shelf.ts',
    name: 'recoverShelves',
    wrap: (original) => async (state, repairs) => {
      await original(state, repairs)
      for (const shelf of state.shelves.values())
        shelf.committedSeq = shelf.nextSeq = shelf.headSeq + shelf.messages
    },
    noticed: /kept \d+, taken|was acknowledged and is nowhere|conservation/,
  }),
  mutation<typeof reseal>({
    mistake: 'reseals in two writes',
    file: 'batches/reseal.ts',
    name: 'reseal',
    wrap: (original) => (session, claimed, chunks, counts) => {
      const { committer } = session
      const commit = async (part: WritePart) => {
        const ops: StoreOp[] = []
        await committer.commit({
          prepare(first) {
            part.prepare(ops)
            first.push(...ops.filter((op) => isIn(op, table.batches)))
          },
        })
        await committer.commit({
          prepare: (second) => void second.push(...ops.filter((op) => isIn(op, table.chunks))),
        })
      }
      return original(withCommit(session, commit), claimed, chunks, counts)
    },
    noticed: /has a hole at|ends within a chunk|may be sent and is not durable/,
  }),
  mutation<typeof reseal>({
    mistake: 'hands the parts of a batch out before they are durable',
    file: 'batches/reseal.ts',
    name: 'reseal',
    wrap:
      (original) =>
      (session, ...rest) =>
        original(impatient(session), ...rest),
    noticed: /may be sent and is not durable/,
  }),
  mutation<typeof reseal>({
    mistake: 'keeps the batchId of a batch that is resealed',
    file: 'batches/reseal.ts',
    name: 'reseal',
    wrap:
      (original) =>
      (session, claimed, ...rest) => {
        const { batchId } = claimed.claim.batch
        return original(overriding(session, { newId: () => batchId }), claimed, ...rest)
      },
    noticed: /changed from|was resealed and is/,
  }),
  mutation<typeof setClaimOperation>({
    mistake: 'forgets the operation of a batch in a power cut',
    file: 'batches/reseal.ts',
    name: 'setClaimOperation',
    wrap: (original) => async (session, claimed, operation) => {
      const { claim } = claimed
      if (claim.refs === null) return original(session, claimed, operation)
      claim.batch = { ...claim.batch, operation }
      return claim.batch
    },
    noticed: /has another operation, not durably/,
  }),
  mutation<typeof setClaimHeld>({
    mistake: 'forgets in a power cut that a batch is held',
    file: 'batches/reseal.ts',
    name: 'setClaimHeld',
    wrap: (original) => async (session, claimed, held) => {
      const { claim } = claimed
      if (claim.refs === null) return original(session, claimed, held)
      claim.batch = { ...claim.batch, held }
      return claim.batch
    },
    noticed: /has another held state, not durably/,
  }),
  mutation<typeof addClaim>({
    mistake: 'sends a held batch after a restart',
    file: 'batches/claim.ts',
    name: 'addClaim',
    wrap: (original) => (lane, firstSeq, record) => {
      const { held: _held, ...rest } = record
      return original(lane, firstSeq, rest)
    },
    noticed: /has another held state than its claim/,
  }),
  mutation<typeof deleteClaim>({
    mistake: 'counts a settled batch as held',
    file: 'chunk-log/lane-claims.ts',
    name: 'deleteClaim',
    wrap: () => (lane, firstSeq) => void lane.claims.delete(firstSeq),
    noticed: /the sums of the claims/,
  }),
  mutation<typeof addClaim>({
    mistake: 'sends a batch of the single operation as a batch after a restart',
    file: 'batches/claim.ts',
    name: 'addClaim',
    wrap: (original) => (lane, firstSeq, record) => original(lane, firstSeq, { ...record, turn: 'batch' }),
    noticed: /goes by another operation than its claim says/,
  }),
  mutation<typeof rotate>({
    mistake: 'reports the rotation of a lane before it is durable',
    file: 'chunk-log/lane-rotation.ts',
    name: 'rotate',
    wrap: (original) => (session, provider) => original(impatient(session), provider),
    noticed: /was rotated, not durably/,
  }),
  mutation<typeof findLanes>({
    mistake: 'gives the number of a drained lane again',
    file: 'recovery/lane-recovery.ts',
    name: 'findLanes',
    wrap: (original) => async (state, repairs) => {
      const found = await original(state, repairs)
      state.nextLane = state.lanes.size + 1
      return found
    },
    noticed: /number \d+ was given to a lane again|number \d+:\d+ was given to|conservation/,
    firstSeed: 2100,
  }),
  mutation<(lane: Lane) => boolean>({
    mistake: 'deletes a lane that still holds something',
    file: 'chunk-log/lane-cleanup.ts',
    name: 'isDrained',
    wrap: () => (lane) =>
      lane.role.kind === 'backfill' &&
      lane.nextSeq > 0 &&
      lane.appendedSeq === lane.nextSeq &&
      lane.claims.size === 0 &&
      lane.walk === null,
    noticed: /has payloads and no record/,
  }),
  mutation<typeof createGroup>({
    mistake: 'puts late payloads before fresh ones',
    file: 'chunk-log/group.ts',
    name: 'createGroup',
    wrap: (original) => (state, attachments) =>
      original(overriding(state, { isLate: () => false }), attachments),
    noticed: /is late and is in a live lane/,
  }),
  mutation<typeof settle>({
    mistake: 'writes the receipt of a settle beside it',
    file: 'batches/settle.ts',
    name: 'settle',
    wrap: (original) => (session, claimed, what) => {
      const { committer, receipts, options } = session
      const { receipt } = what
      const commit = (part: WritePart) =>
        committer.commit({
          ...part,
          prepare(ops) {
            part.prepare(ops)
            if (receipt === null) return
            const beside = { prepare: (own: StoreOp[]) => void putReceipt(receipts, receipt, options, own) }
            void committer.commit(beside).catch(() => undefined)
          },
        })
      return original(withCommit(session, commit), claimed, { ...what, receipt: null })
    },
    noticed: /is settled and has no receipt|receipts are left/,
  }),
  mutation<typeof recoverReceipts>({
    mistake: 'gives the number of a forgotten receipt again',
    file: 'recovery/receipt-recovery.ts',
    name: 'recoverReceipts',
    wrap: (original) => async (state, repairs) => {
      await original(state, repairs)
      const { receipts } = state
      receipts.nextN = Math.max(-1, ...receipts.sizes.keys()) + 1
    },
    noticed: /receipt \d+ was given/,
  }),
]
