// ledger.ts: what the ledger of the daemon says against what the service answered.

import type { Service, Submission } from '../world/service.ts'

export type LedgerEntry = {
  payloadId: string
  outcome: string
  batchId: string
  requestId: string | null
}

type Ledger = { entries: readonly LedgerEntry[]; wholeFromMs: number; struck: ReadonlySet<string> }

/**
 * `wholeFromMs`: what the service answered from then on is in the ledger. What was answered before may not be: the
 * records are not synced, and are lost with the power or the disk. What was struck and sent from memory does not come again
 * where the process ends before the settle.
 */
export function wrongInLedger(
  services: readonly Service[],
  { entries, wholeFromMs, struck }: Ledger,
): string[] {
  const wrong: string[] = []
  const answers = new Map(
    services.flatMap(({ journal }) =>
      journal.flatMap((one) => (one.requestId === null ? [] : [[one.requestId, one]])),
    ),
  )
  const delivered = new Set<string>()
  for (const { payloadId, outcome, batchId, requestId } of entries) {
    if (outcome !== 'delivered' || requestId === null) continue
    delivered.add(payloadId)
    const answer = answers.get(requestId)
    if (answer === undefined || !answer.payloadIds.includes(payloadId))
      wrong.push(
        `the ledger says that ${payloadId} was delivered by ${requestId}, which is of another payload`,
      )
    else if (answer.batchId !== null && answer.batchId !== batchId)
      wrong.push(`the ledger has ${payloadId} in batch ${batchId}; it was in ${answer.batchId}`)
  }
  for (const { journal } of services)
    for (const submission of journal) {
      const { batchId, status, results, answeredMs } = submission
      if (batchId === null || status !== 200 || (answeredMs ?? 0) < wholeFromMs) continue
      if (!isSettled(submission, journal)) continue
      for (const [payloadId, result] of results ?? [])
        if (result === 'accepted' && !delivered.has(payloadId) && !struck.has(payloadId))
          wrong.push(`the ledger does not say that ${payloadId} of batch ${batchId} was delivered`)
    }
  return wrong
}

/**
 * What an answer says that leaves payloads out is settled with the next answer to its batch. Until then the process that
 * heard it has it in memory alone.
 */
function isSettled(one: Submission, journal: readonly Submission[]): boolean {
  if (one.heard !== 'yes') return false
  if (one.payloadIds.every((id) => one.results?.has(id))) return true
  const settles = ({ batchId, life, atMs, heard, status }: Submission) =>
    batchId === one.batchId &&
    life === one.life &&
    atMs > one.atMs &&
    heard === 'yes' &&
    (status === 200 || status === 409)
  return journal.some(settles)
}
