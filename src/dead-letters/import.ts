// import.ts: imports lines of `export` and `spool salvage`. Payloads go to the live lane of their provider;
// messages go through the mapping, and become dead letters again where it refuses them.
//
// A payload whose payloadId is in a lane or a dead letter is a duplicate, and so is a message whose dead
// letter still exists. The spool has no record of delivered payloads: they are sent again, under the
// same payloadId.
// All lines are checked before the first is imported, so an invalid file changes nothing.

import type { PayloadId, ProviderName } from '../domain/ids.ts'
import type { Envelope } from '../domain/message.ts'
import { parseLine } from './ndjson-line.ts'
import { invalidDeadLetter, requeuedPayload, validatePayload } from './payload-validation.ts'
import { createPayloadWriter, knownProvider, type WorkOptions } from './payload-writer.ts'
import type { DeadLetterCounters, DeadLetterDeps, ImportReport, IncomingMessage } from './types.ts'

type Incoming = {
  payloads: { provider: ProviderName; payloadId: PayloadId; payload: object }[]
  messages: (IncomingMessage & { deadLetterId: string | null })[]
  suspect: number
}

const problemsMax = 20

export async function importLines(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  text: string,
  { dryRun, signal }: WorkOptions,
): Promise<ImportReport> {
  const { spool, emit, remap } = deps
  const { payloads, messages, suspect } = parseAll(deps, text)
  const known = await spool.storedPayloadIds(new Set(payloads.map(({ payloadId }) => payloadId)), signal)
  const writer = createPayloadWriter(deps, { dryRun, signal })
  let added = 0
  let duplicates = 0
  for (const { provider, payloadId, payload } of payloads) {
    if (signal.aborted) break
    if (known.has(payloadId)) {
      duplicates += 1
      continue
    }
    known.add(payloadId)
    added += 1
    await writer.add(requeuedPayload(provider, payloadId, payload), null)
  }
  await writer.flush()
  const imported = dryRun ? added : writer.written
  const toMap: IncomingMessage[] = []
  for (const { id, envelope, deadLetterId } of messages) {
    if (deadLetterId !== null && (await isStored(deps, deadLetterId, envelope))) duplicates += 1
    else toMap.push({ id, envelope })
  }
  const mapped =
    toMap.length > 0 && !signal.aborted
      ? await remap({ reason: null, source: null, dryRun, messages: each(toMap) }, signal)
      : null
  if (!dryRun) {
    counters.imported += imported + toMap.length
    emit({ kind: 'dead_letters_imported', payloads: imported, messages: toMap.length, duplicates })
  }
  return { dryRun, payloads: imported, duplicates, suspect, remap: mapped }
}

async function isStored({ spool }: DeadLetterDeps, id: string, { topic, bytes }: Envelope): Promise<boolean> {
  const envelope = (await spool.deadLetter(id))?.deadLetter.envelope
  return envelope?.topic === topic && envelope.bytes === bytes
}

async function* each<Entry>(entries: readonly Entry[]): AsyncGenerator<Entry> {
  yield* entries
}

/** Throws DEAD_LETTER_INVALID where one line is invalid. */
function parseAll(deps: DeadLetterDeps, text: string): Incoming {
  const incoming: Incoming = { payloads: [], messages: [], suspect: 0 }
  const problems: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const problem = parseOne(deps, incoming, line, index + 1)
    if (problem !== null) problems.push(`line ${index + 1}: ${problem}`)
    if (problems.length === problemsMax) break
  }
  if (problems.length > 0) throw invalidDeadLetter('The file cannot be imported.', problems)
  return incoming
}

/** Adds the line to `incoming`; returns what is wrong with it, or null. */
function parseOne(deps: DeadLetterDeps, incoming: Incoming, text: string, number: number): string | null {
  const line = parseLine(text)
  if (typeof line === 'string') return line
  if (line.kind === 'message') {
    const { envelope, deadLetterId } = line
    incoming.messages.push({ id: `line ${number}`, envelope, deadLetterId })
    return null
  }
  if (line.suspect !== null) {
    incoming.suspect += 1
    return null
  }
  // With one provider in the config a payload without one is its payload, also where the lane record was
  // lost.
  const [only = null, ...others] = deps.providers()
  const isOnly = line.provider === null && others.length === 0
  const provider = isOnly ? only : knownProvider(deps, line.provider)
  if (provider === null) {
    const names = deps.providers().join(', ')
    return `the provider ${JSON.stringify(line.provider)} is not in the config, which has ${names}`
  }
  const validation = validatePayload(line.payload, null)
  if (validation.kind === 'invalid') return validation.problems.join('; ')
  const { payload } = validation
  incoming.payloads.push({ provider, payloadId: payload.payloadId as PayloadId, payload })
  return null
}
