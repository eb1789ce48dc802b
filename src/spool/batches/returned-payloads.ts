// returned-payloads.ts: removes pending payloads, because the server that their messages came from has them.
// One atomic write deletes their chunks and counts them; a crash before it leaves them pending, and they are
// sent. Their numbers are never given again.
//
// Messages that come again must not be duplicates of what was removed, or they would be acknowledged and be
// lost. So the keys of the dedup window are deleted in earlier writes, a few thousand at a time, and what
// came meanwhile in the write of the removal itself.

import { eachFrame } from '../chunk-log/chunk-codec.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import { expireKeys } from '../chunk-log/group.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import { addSettled, chunkDeleted, putTotals, type ChunkRef, type Lane } from '../chunk-log/lane.ts'
import { putReceipt, receiptsCommitted } from '../chunk-log/receipt-queue.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import type { PendingLimits, PendingPayload, PendingRange, PendingRun } from '../return-calls.ts'
import type { Session } from '../session-state.ts'
import type { StoreOp } from '../../storage/storage.ts'

/** Records of the dedup window that one write deletes. */
const forgottenPerWriteMax = 10_000

/** Waits for the seals of the lane, which can cut chunks, and they for it. */
export function readPending(session: Session, lane: Lane, limits: PendingLimits): Promise<PendingRun | null> {
  const read = lane.sealing.then(() => readNow(session, lane, limits))
  // The caller gets a failure.
  lane.sealing = read.catch(() => undefined)
  return read
}

async function readNow({ store }: Session, lane: Lane, limits: PendingLimits): Promise<PendingRun | null> {
  const { fromSeq = lane.sealSeq, payloadsMax, bytesMax, committedUntil = Infinity } = limits
  if (fromSeq < lane.sealSeq || fromSeq >= lane.committedSeq) return null
  const range = { fromSeq, untilSeq: lane.committedSeq, bytesMax }
  const chunks: ChunkRef[] = []
  const contents: PendingPayload[] = []
  let bytes = 0
  for (const finding of await readRun(store, lane.id, range)) {
    // What cannot be read is set aside when the head of the lane gets there.
    if (finding.kind !== 'chunk') break
    const { ref, chunk } = finding
    const { committedAt } = ref
    if (committedAt > committedUntil) break
    if (chunks.length > 0 && contents.length + ref.count > payloadsMax) break
    chunks.push(ref)
    bytes += ref.bytes
    eachFrame(chunk, (attempts, start, end) => {
      const json = chunk.value.subarray(start, end)
      contents.push({ payloadId: payloadIdIn(chunk.value, start), json, attempts, committedAt })
    })
  }
  // After the read: what was read was numbered before.
  if (limits.messagesOnly === true && fromSeq < lane.exchangedSeq) return null
  if (chunks.length === 0) return null
  const { id, provider } = lane
  const payloads = contents.length
  const endSeq = fromSeq + payloads
  return { lane: id, provider, firstSeq: fromSeq, endSeq, payloads, bytes, chunks, contents }
}

/** Waits for the seals of these lanes, and they for it. */
export function returnPending(
  session: Session,
  ranges: readonly PendingRange[],
  options: { receipts: readonly Buffer[]; forgetKeys: boolean },
): Promise<boolean> {
  const lanes = new Set<Lane>()
  for (const { lane: id } of ranges) {
    const lane = session.lanes.get(id)
    if (lane !== undefined) lanes.add(lane)
  }
  const sealing = Promise.all([...lanes].map((lane) => lane.sealing))
  const returned = sealing.then(() => returnNow(session, ranges, options))
  // The next seal waits for this, also if it fails; the caller gets the failure.
  for (const lane of lanes) lane.sealing = returned.catch(() => undefined)
  return returned
}

async function returnNow(
  session: Session,
  ranges: readonly PendingRange[],
  { receipts, forgetKeys }: { receipts: readonly Buffer[]; forgetKeys: boolean },
): Promise<boolean> {
  if (!areAtHead(session, ranges)) return false
  const { committer, counters, options, clock, compactor } = session
  if (forgetKeys) await forgetAllKeys(session)
  const heads = new Map<Lane, number>()
  for (const { lane, firstSeq } of ranges) {
    const own = session.lanes.get(lane)!
    if (!heads.has(own)) heads.set(own, firstSeq)
  }
  await committer.commit({
    prepare(ops) {
      for (const [lane, firstSeq] of heads) lane.leaving.add(firstSeq)
      for (const range of ranges) removeRange(session, range, ops)
      for (const lane of heads.keys()) putTotals(lane, ops)
      for (const receipt of receipts)
        if (!putReceipt(session.receipts, receipt, options, ops)) counters.receiptsDropped += 1
      if (forgetKeys) expireKeys(session, clock.monotonic(), { limit: Infinity, all: true }, ops)
    },
    committed() {
      for (const { payloads } of ranges) counters.returned += payloads
      for (const [lane, firstSeq] of heads) lane.leaving.delete(firstSeq)
      receiptsCommitted(session.receipts)
    },
  })
  for (const lane of heads.keys()) compactor.afterSettle(lane)
  if (forgetKeys) compactor.afterExpiry()
  return true
}

/** Also after the spool was opened again, where a seal that seemed to fail can be on the disk. */
function areAtHead({ lanes }: Session, ranges: readonly PendingRange[]): boolean {
  const ends = new Map<Lane, number>()
  for (const { lane: id, firstSeq, endSeq } of ranges) {
    const lane = lanes.get(id)
    if (lane === undefined || firstSeq !== (ends.get(lane) ?? lane.sealSeq)) return false
    if (endSeq > lane.committedSeq) return false
    ends.set(lane, endSeq)
  }
  return true
}

async function forgetAllKeys(session: Session): Promise<void> {
  const { committer, clock } = session
  const how = { limit: forgottenPerWriteMax, all: true }
  for (;;) {
    let forgotten = 0
    await committer.commit({
      prepare(ops) {
        forgotten = expireKeys(session, clock.monotonic(), how, ops)
      },
    })
    if (forgotten < forgottenPerWriteMax) return
  }
}

function removeRange(
  session: Session,
  { lane: id, endSeq, payloads, bytes, chunks }: PendingRange,
  ops: StoreOp[],
) {
  const lane = session.lanes.get(id)!
  for (const { firstSeq, count } of chunks) {
    ops.push({ type: 'del', key: seqKey(table.chunks, id, firstSeq) })
    chunkDeleted(lane, firstSeq, count)
    session.recent.drop(id, firstSeq)
  }
  const last = chunks.at(-1)!
  lane.sealSeq = endSeq
  lane.sealBytes = last.startBytes + last.bytes
  lane.refs = lane.refs.filter(({ firstSeq }) => firstSeq >= endSeq)
  lane.refsEnd = Math.max(lane.refsEnd, endSeq)
  addSettled(lane, 'requeued', payloads, bytes)
  session.openBytes -= bytes
  lane.drainedBytes += bytes
}
