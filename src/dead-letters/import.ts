// import.ts: takes in what `export` and `spool salvage` wrote. Payloads go to the live lane of their provider; messages go
// through the mapping, and what cannot be mapped becomes a dead letter again.
//
// A payload whose payloadId stands in a lane or in a dead letter is refused as a copy, and so is a message whose letter is
// there still. What was delivered meanwhile is not known any more: it goes again, under the same payloadId.
// Every line is looked at before the first is taken: a file that is not right changes nothing.

import type { PayloadId, ProviderName } from '../domain/ids.ts'
import type { Envelope } from '../domain/message.ts'
import type { DeadLetterCounters, DeadLetterDeps, RemapOutcome } from './dead-letters.ts'
import { parseLine } from './ndjson-line.ts'
import { validatePayload, requeuedPayload, invalidFault } from './payload-validation.ts'
import { createGroup, providerOf } from './requeue.ts'

export type ImportReport = {
  dryRun: boolean
  payloads: number
  /** Lines that are in the spool already, or twice in the file. */
  duplicates: number
  /** Payloads that may not be what was stored; take the word out of the line to have it sent. */
  suspect: number
  remap: RemapOutcome | null
}

type Incoming = {
  payloads: { provider: ProviderName; payloadId: PayloadId; payload: object }[]
  messages: { id: string; envelope: Envelope; letterId: string | null }[]
  suspect: number
}

const problemsMax = 20

export async function importLines(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  text: string,
  { dryRun }: { dryRun: boolean },
  signal: AbortSignal,
): Promise<ImportReport> {
  const { spool, emit, remap } = deps
  const { payloads, messages, suspect } = readAll(deps, text)
  const known = await spool.storedPayloadIds(new Set(payloads.map(({ payloadId }) => payloadId)), signal)
  const group = createGroup(deps, dryRun, signal)
  let meant = 0
  let copies = 0
  for (const { provider, payloadId, payload } of payloads) {
    if (signal.aborted) break
    if (known.has(payloadId)) {
      copies += 1
      continue
    }
    known.add(payloadId)
    meant += 1
    await group.add(requeuedPayload(provider, payloadId, payload), null)
  }
  await group.end()
  const taken = dryRun ? meant : group.done
  const left: { id: string; envelope: Envelope }[] = []
  for (const { id, envelope, letterId } of messages) {
    const isThere = letterId !== null && (await isSame(deps, letterId, envelope))
    if (isThere) copies += 1
    else left.push({ id, envelope })
  }
  const mapped =
    left.length > 0 && !signal.aborted
      ? await remap({ reason: null, source: null, dryRun, messages: over(left) }, signal)
      : null
  if (!dryRun) {
    counters.imported += taken + left.length
    emit({ kind: 'dead_letters_imported', payloads: taken, messages: left.length, duplicates: copies })
  }
  return { dryRun, payloads: taken, duplicates: copies, suspect, remap: mapped }
}

async function isSame({ spool }: DeadLetterDeps, id: string, { topic, bytes }: Envelope): Promise<boolean> {
  const envelope = (await spool.deadLetter(id))?.deadLetter.envelope
  return envelope?.topic === topic && envelope.bytes === bytes
}

async function* over<Entry>(entries: readonly Entry[]): AsyncGenerator<Entry> {
  yield* entries
}

/** Rejects everything where one line is wrong. */
function readAll(deps: DeadLetterDeps, text: string): Incoming {
  const incoming: Incoming = { payloads: [], messages: [], suspect: 0 }
  const problems: string[] = []
  for (const [index, one] of text.split('\n').entries()) {
    if (one.trim() === '') continue
    const problem = readOne(deps, incoming, one, index)
    if (problem !== null) problems.push(`line ${index + 1}: ${problem}`)
    if (problems.length === problemsMax) break
  }
  if (problems.length > 0) throw invalidFault('The lines cannot be taken in.', problems)
  return incoming
}

function readOne(deps: DeadLetterDeps, incoming: Incoming, text: string, index: number): string | null {
  const line = parseLine(text)
  if (typeof line === 'string') return line
  if (line.kind === 'message') {
    incoming.messages.push({ id: `line ${index + 1}`, envelope: line.envelope, letterId: line.letterId })
    return null
  }
  if (line.suspect !== null) {
    incoming.suspect += 1
    return null
  }
  // Where there is one provider it is nobody else's, also when the record of its lane is lost.
  const [only = null, ...others] = deps.providers()
  const isOnly = line.provider === null && others.length === 0
  const provider = isOnly ? only : providerOf(deps, line.provider)
  if (provider === null) {
    const names = deps.providers().join(', ')
    return `the provider ${JSON.stringify(line.provider)} is not in the config; there is ${names}`
  }
  const judged = validatePayload(line.payload, null)
  if (judged.kind === 'unfit') return judged.problems.join('; ')
  const { payload } = judged
  incoming.payloads.push({ provider, payloadId: payload.payloadId as PayloadId, payload })
  return null
}
