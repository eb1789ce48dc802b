// returned-payloads.ts: removes pending payloads that are stored in a queue of the server they came from.
// One atomic write deletes their chunks and counts them; a crash before it leaves them pending, and they are
// sent. Their numbers are never given again.

import { eachFrame } from '../chunk-log/chunk-codec.ts'
import { readRun } from '../chunk-log/chunk-log.ts'
import { seqKey, table } from '../chunk-log/key-layout.ts'
import { addSettled, chunkDeleted, putTotals, setHead, type ChunkRef, type Lane } from '../chunk-log/lane.ts'
import { putReceipt, receiptsCommitted } from '../chunk-log/receipt-queue.ts'
import { payloadIdIn } from '../../domain/payload.ts'
import type { PendingLimits, PendingPayload, PendingRange, PendingRun } from '../return-calls.ts'
import type { Session } from '../session-state.ts'
import type { StoreOp } from '../../storage/storage.ts'
import { stepOverGaps } from './seal.ts'

/** Waits for the seals of the lane, which can cut chunks, and they for it. */
export function readPending(session: Session, lane: Lane, limits: PendingLimits): Promise<PendingRun | null> {
  const read = lane.sealing.then(() => readNow(session, lane, limits))
  // The caller gets a failure.
  lane.sealing = read.catch(() => undefined)
  return read
}

async function readNow({ store }: Session, lane: Lane, limits: PendingLimits): Promise<PendingRun | null> {
  const { payloadsMax, bytesMax, committedUntil = Infinity } = limits
  const fromSeq = lane.sealSeq
  if (fromSeq >= lane.committedSeq) return null
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
  if (chunks.length === 0) return null
  const { id, provider } = lane
  const payloads = contents.length
  const endSeq = fromSeq + payloads
  return { lane: id, provider, firstSeq: fromSeq, endSeq, payloads, bytes, chunks, contents }
}

/** Waits for the seals of the lane, and they for it. */
export function returnPending(
  session: Session,
  range: PendingRange,
  receipt: Buffer | null,
): Promise<boolean> {
  const lane = session.lanes.get(range.lane)
  if (lane === undefined) return Promise.resolve(false)
  const returned = lane.sealing.then(() => returnNow(session, lane, { range, receipt }))
  // The next seal waits for this, also if it fails; the caller gets the failure.
  lane.sealing = returned.catch(() => undefined)
  return returned
}

async function returnNow(
  session: Session,
  lane: Lane,
  { range, receipt }: { range: PendingRange; receipt: Buffer | null },
): Promise<boolean> {
  const { firstSeq, endSeq, payloads } = range
  // Also after the spool was opened again, where a seal that seemed to fail can be on the disk.
  if (firstSeq !== lane.sealSeq || endSeq > lane.committedSeq) return false
  const { committer, counters, options, compactor } = session
  await committer.commit({
    prepare(ops) {
      lane.leaving.add(firstSeq)
      removeRange(session, lane, range, ops)
      putTotals(lane, ops)
      if (receipt !== null && !putReceipt(session.receipts, receipt, options, ops))
        counters.receiptsDropped += 1
    },
    committed() {
      counters.returned += payloads
      lane.leaving.delete(firstSeq)
      receiptsCommitted(session.receipts)
    },
  })
  await stepOverGaps(session, lane)
  compactor.afterSettle(lane)
  return true
}

function removeRange(
  session: Session,
  lane: Lane,
  { endSeq, payloads, bytes, chunks }: PendingRange,
  ops: StoreOp[],
): void {
  for (const { firstSeq, count } of chunks) {
    ops.push({ type: 'del', key: seqKey(table.chunks, lane.id, firstSeq) })
    chunkDeleted(lane, firstSeq, count)
    session.recent.drop(lane.id, firstSeq)
  }
  const last = chunks.at(-1)!
  lane.refs = lane.refs.filter(({ firstSeq }) => firstSeq >= endSeq)
  lane.refsEnd = Math.max(lane.refsEnd, endSeq)
  addSettled(lane, 'requeued', payloads, bytes)
  session.openBytes -= bytes
  setHead(session, lane, endSeq, last.startBytes + last.bytes)
  lane.drainedBytes += bytes
}
