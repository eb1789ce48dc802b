// import.ts: imports lines of `export` and `spool salvage`. Payloads go to the live lane of their provider;
// messages go through the mapping, and become dead letters again where it refuses them.
//
// Each line is read twice (import-plan.ts). What the spool holds is a duplicate: a payload in a lane or a
// dead letter, a message on a shelf or in a dead letter. What the ledger has as delivered is left out as
// well. So an import that was interrupted can be repeated, and continues where it stopped.
// All lines are checked before the first is imported, so an invalid file changes nothing.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { assertNever } from '../std/assert.ts'
import type { PayloadId, ProviderName } from '../domain/ids.ts'
import type { MappedPayload } from '../domain/payload.ts'
import { plannedMax, type ImportPlan, type ImportPlans } from './import-plan.ts'
import { parseLine } from './ndjson-line.ts'
import { invalidDeadLetter, requeuedPayload, validatePayload } from './payload-validation.ts'
import { createPayloadWriter, knownProvider } from './payload-writer.ts'
import type {
  DeadLetterCounters,
  DeadLetterDeps,
  ImportCheck,
  ImportOptions,
  ImportReport,
  ImportStart,
  IncomingMessage,
  RemapOutcome,
} from './types.ts'

type Incoming = {
  payloads: { provider: ProviderName; payloadId: PayloadId; payload: { signalTimestamp: number } }[]
  messages: IncomingMessage[]
  suspect: number
}

const problemsMax = 20
/** Lines checked before other work of the daemon gets a turn: some 10 ms. */
const linesPerTurn = 256

export type Importer = {
  plan(text: string, token: string | undefined, signal: AbortSignal): Promise<ImportStart>
  check(token: string, options: { withoutLedger: boolean }, signal: AbortSignal): Promise<ImportCheck>
  importLines(text: string, options: ImportOptions, signal: AbortSignal): Promise<ImportReport>
}

export function createImporter(
  deps: DeadLetterDeps,
  counters: DeadLetterCounters,
  plans: ImportPlans,
): Importer {
  return {
    plan: (text, token, signal) =>
      plans.inTurn(token, async (plan) => {
        await addToPlan(deps, plan, await parseAll(deps, text), signal)
        return { import: plan.token, planned: plan.size }
      }),
    check: (token, options, signal) => plans.inTurn(token, (plan) => plan.check(options, signal)),
    importLines: (text, options, signal) =>
      plans.inTurn(options.token, async (plan) => {
        const incoming = await parseAll(deps, text)
        if (options.token === undefined) {
          await addToPlan(deps, plan, incoming, signal)
          await plan.check({ withoutLedger: options.withoutLedger === true }, signal)
        }
        if (!plan.checked) throw changed('The lines were not compared with the spool yet.')
        return importPlanned({ deps, counters, plan }, incoming, options.dryRun, signal)
      }),
  }
}

async function addToPlan(
  { remap }: DeadLetterDeps,
  plan: ImportPlan,
  { payloads, messages }: Incoming,
  signal: AbortSignal,
): Promise<void> {
  for (const { payloadId, payload } of payloads) plan.add(payloadId, payload.signalTimestamp)
  for (const { envelope } of messages) plan.addMessage(envelope)
  if (messages.length > 0) {
    // A dry run: it tells which payloads the messages become.
    const wants = ({ payloadId, deviceTime }: MappedPayload) => {
      plan.add(payloadId, deviceTime)
      return false
    }
    await remap({ reason: null, source: null, dryRun: true, messages: each(messages), wants }, signal)
  }
  if (plan.size > plannedMax)
    throw invalidDeadLetter('The import is too large.', [
      `at most ${plannedMax} payloads are planned at once`,
    ])
}

type Importing = { deps: DeadLetterDeps; counters: DeadLetterCounters; plan: ImportPlan }

async function importPlanned(
  { deps, counters, plan }: Importing,
  { payloads, messages, suspect }: Incoming,
  dryRun: boolean,
  signal: AbortSignal,
): Promise<ImportReport> {
  const report: ImportReport = { dryRun, payloads: 0, duplicates: 0, delivered: 0, suspect, remap: null }
  const writer = createPayloadWriter(deps, { dryRun, signal })
  for (const { provider, payloadId, payload } of payloads) {
    if (signal.aborted) break
    if (!isNew(report, plan, payloadId)) continue
    report.payloads += 1
    await writer.add(requeuedPayload(provider, payloadId, payload), null)
  }
  await writer.flush()
  if (!dryRun) report.payloads = writer.written
  const toMap = messages.filter(({ envelope }) => !plan.isStored(envelope))
  report.duplicates += messages.length - toMap.length
  if (toMap.length > 0 && !signal.aborted) report.remap = await mapMessages(toMap)
  if (!dryRun) {
    const { payloads: imported, duplicates, delivered } = report
    counters.imported += imported + toMap.length
    deps.emit({
      kind: 'dead_letters_imported',
      payloads: imported,
      messages: toMap.length,
      duplicates: duplicates + delivered,
    })
  }
  return report

  function mapMessages(mapped: readonly IncomingMessage[]): Promise<RemapOutcome> {
    const wants = ({ payloadId }: MappedPayload) => isNew(report, plan, payloadId)
    return deps.remap({ reason: null, source: null, dryRun, messages: each(mapped), wants }, signal)
  }
}

/** Counts a payload that is not new. */
function isNew(report: ImportReport, plan: ImportPlan, payloadId: string): boolean {
  const known = plan.take(payloadId)
  switch (known) {
    case 'new':
      return true
    case 'delivered':
      report.delivered += 1
      return false
    case 'stored':
    case 'imported':
      report.duplicates += 1
      return false
    case null:
      throw changed(`The payload ${payloadId} was not there when the file was read first.`)
    default:
      return assertNever(known)
  }
}

function changed(why: string): Error {
  return invalidDeadLetter('The file cannot be imported.', [why])
}

async function* each<Entry>(entries: readonly Entry[]): AsyncGenerator<Entry> {
  yield* entries
}

/** Throws DEAD_LETTER_INVALID where one line is invalid. */
async function parseAll(deps: DeadLetterDeps, text: string): Promise<Incoming> {
  const incoming: Incoming = { payloads: [], messages: [], suspect: 0 }
  const problems: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    if (index % linesPerTurn === 0) await nextTurn()
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
    incoming.messages.push({ id: `line ${number}`, envelope: line.envelope })
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
