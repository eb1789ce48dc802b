// requeue.ts: sends dead letters again: payloads to the end of their live lane, messages through the mapping
// in force. Dead letters that arrive during the work are left for the next requeue, or a payload that is
// refused again at once would be requeued without end.

import { droppedByPerson, type DeadLetter } from '../domain/dead-letter.ts'
import type { MappedPayload } from '../domain/payload.ts'
import type { DeadLetterEntry } from '../spool/spool.ts'
import { requeuedPayload } from './payload-validation.ts'
import { createPayloadWriter, knownProvider, type WorkOptions } from './payload-writer.ts'
import { selectDeadLetters } from './select.ts'
import type { DeadLetterCounters, DeadLetterDeps, DeadLetterQuery, RequeueReport } from './types.ts'

const droppedText = `dropped from quarantine by an operator; select it with --reason ${droppedByPerson}`

export async function requeue(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  query: DeadLetterQuery,
  { dryRun, signal }: WorkOptions,
): Promise<RequeueReport> {
  const { spool, clock, emit, remap } = deps
  const startedAt = clock.now()
  const left: Record<string, number> = {}
  const found = new Set<string>()
  let selected = 0
  let messages = 0
  const writer = createPayloadWriter(deps, { dryRun, signal })
  try {
    for await (const { id, deadLetter } of selectDeadLetters(spool, query)) {
      if (signal.aborted) break
      if (arrivedMeanwhile(deadLetter)) continue
      if (query.ids !== undefined) found.add(id)
      const payload = isMessage(deadLetter) ? null : payloadOf(deadLetter)
      if (payload === null) messages += 1
      else if (typeof payload === 'string') left[payload] = (left[payload] ?? 0) + 1
      else {
        selected += 1
        await writer.add(payload, id)
      }
    }
    await writer.flush()
  } finally {
    // Also after SPOOL_ENTRY_GONE in a later group: the earlier groups are durable.
    const { written } = writer
    counters.requeued += written
    if (written > 0) emit({ kind: 'dead_letters_requeued', deadLetters: written, payloads: written })
  }
  const mapped =
    messages > 0 && !signal.aborted
      ? await remap({ reason: null, source: null, dryRun, deadLetters: selectedMessages() }, signal)
      : null
  const missing = (query.ids ?? []).filter((id) => !found.has(id))
  return { dryRun, payloads: dryRun ? selected : writer.written, left, missing, remap: mapped }

  async function* selectedMessages(): AsyncGenerator<DeadLetterEntry> {
    for await (const entry of selectDeadLetters(spool, { ...query, stage: 'mapping' }))
      if (!arrivedMeanwhile(entry.deadLetter) && isMessage(entry.deadLetter)) yield entry
  }

  /** A time in the future comes from a clock that was set back since; such a dead letter is not new. */
  function arrivedMeanwhile({ at }: DeadLetter): boolean {
    return query.ids === undefined && at > startedAt && at <= clock.now()
  }

  function isMessage(deadLetter: DeadLetter): boolean {
    return deadLetter.stage === 'mapping' && !isLeftOut(deadLetter)
  }

  /** The payload, or why the dead letter stays. */
  function payloadOf(deadLetter: DeadLetter): MappedPayload | string {
    if (isLeftOut(deadLetter)) return droppedText
    const { provider, payload, payloadId } = deadLetter
    const known = knownProvider(deps, provider)
    if (known === null) return `the provider ${JSON.stringify(provider)} is not in the config`
    if (payloadId === null || typeof payload !== 'object' || payload === null) return 'it has no payload'
    return requeuedPayload(known, payloadId, payload)
  }

  /** An operator decided against it, so only its id or its reason selects it. */
  function isLeftOut({ reason }: DeadLetter): boolean {
    return reason === droppedByPerson && query.ids === undefined && query.reason === undefined
  }
}
