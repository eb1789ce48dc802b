// oracle.ts: what must hold, said by the world alone: what devices sent and saw acknowledged, what the service has, what
// the gateway says of itself. No code of the product decides here.

import type { Status } from '../../src/ops/status-schema/status-schema.ts'
import type { Flips } from './acts/flip-acts.ts'
import { judged, type Circumstances, type DeadLetter } from './oracle/deliveries.ts'
import { becameOf, futureMaxMs } from './oracle/messages.ts'
import type { EngineOracle } from './oracle/engine.ts'
import { wrongLanes, type LaneEvents } from './oracle/lanes.ts'
import type { LostPositions } from './oracle/lost-positions.ts'
import { payloadsOf, type Payloads } from './oracle/payloads.ts'
import { wrongRepeats, type RepeatRules } from './oracle/repeats.ts'
import { wrongRests } from './oracle/rests.ts'
import type { Fleet } from './world/fleet.ts'
import type { Service } from './world/service.ts'
import type { Fault } from './world/service-faults.ts'

const ofDeadLetters = ['DEAD_LETTERS', 'DEAD_LETTERS_WAITING']
/** It stays until the next start. */
const ofKills = ['LAST_RUN_ENDED_UNCLEAN']
/** An hour long, where the clock was set. */
const ofClock = ['CLOCK_STEPPED']
/** Of a device whose times are in the future. The last messages may be all of it: a burst that it sends late. */
const ofFuture = ['DEVICES_NOT_MAPPED', 'NOTHING_MAPPED']
/** Of a device whose clock is off by hours, or hours and a half. */
const ofHours = ['DEVICES_HOURS_OFF']
/** A quarter of the spool is for settling, and the condition is about three quarters of the rest. */
const ofFilling = ['SPOOL_FILLING']
const ofDoomed = ['PAYLOADS_FAILING', 'NOTHING_ACCEPTED']
/** An hour long, after an answer that is not what the specification says, or a message of QoS 0. */
const ofAnswers = ['ANSWERS_INCONSISTENT']
/** What a bit that flips does to a chunk. */
const ofFlips = ['CHUNK_DAMAGED', 'RECORD_DAMAGED', 'WRITES_MISSING']
const ofDropped = ['MESSAGES_DROPPED']
const oddFaults: readonly Fault['kind'][] = ['truncated', 'html', 'unlisted', 'odd']

export type Known = {
  fleet: Fleet
  services: readonly Service[]
  positions: LostPositions
  /** Null where the devices connect to the gateway. */
  engine: EngineOracle | null
  /** Null where the gateway does not run. */
  status: Status | null
  deadLetters: readonly DeadLetter[]
  circumstances: Omit<Circumstances, 'isCopied' | 'isStruck' | 'clockSetMs'>
  isConfigNew: boolean
  flips: Flips
  /** The run waited for conditions that stay for an hour. */
  isPatient: boolean
  lanes: { events: LaneEvents; afterMs: number; epochMs: number }
  repeats: Pick<RepeatRules, 'outages' | 'holdsRepeated' | 'holdsRefused'>
  /** The database of the spool. */
  store: unknown
}

type Sent = Pick<Known, 'fleet' | 'services' | 'positions' | 'engine'>

function payloadsIn({ fleet, services, positions, engine }: Sent): Payloads {
  const mayBeBoth = (payloadId: string) => engine?.mayBeBoth(payloadId) === true
  return payloadsOf(fleet, services, { positions, mayBeBoth })
}

/** While faults go on. */
export function wrongSoFar(sent: Sent): string[] {
  const { fleet, services, engine } = sent
  const { wrong } = payloadsIn(sent)
  const ofServices = services.flatMap((service) => service.wrong)
  return [...fleet.wrong, ...ofServices, ...(engine?.wrong ?? []), ...wrong]
}

/** Conditions that have no cause after all faults. */
export function wronglyOpen(
  { conditions, spool }: Status,
  {
    fleet,
    services,
    circumstances: { acts },
    isConfigNew,
    isPatient,
    flips,
  }: Pick<Known, 'fleet' | 'services' | 'circumstances' | 'isConfigNew' | 'isPatient' | 'flips'>,
): Status['conditions'] {
  const expected = [
    ...ofKills,
    ...(fleet.clockSetMs.length > 0 ? ofClock : []),
    ...(fleet.messages.some(isInFuture) ? ofFuture : []),
    ...(fleet.messages.some(isOffByHours) ? ofHours : []),
    ...(acts.some(({ kind }) => kind === 'purge') ? ['DEAD_LETTERS_PURGED'] : []),
    ...(isConfigNew ? ['RESTART_NEEDED'] : []),
    ...(flips.isAny ? ofFlips : []),
    // Dead letters are for a person to look at, and so is a device whose payloads are all refused.
    ...(spool.deadLetters > 0 ? ofDeadLetters : []),
    ...(isFilledByKept(spool) ? ofFilling : []),
    ...(hasDoomed(fleet) ? ofDoomed : []),
    ...(!isPatient && services.some(hasAnsweredOddly) ? ofAnswers : []),
    ...(!isPatient && fleet.messages.some(({ qos }) => qos === 0) ? ofDropped : []),
  ]
  return conditions.filter(({ code }) => !expected.includes(code))
}

const halfHourMs = 1_800_000
const isOffByHours = ({ device: { clockMs } }: Fleet['messages'][number]) =>
  Math.abs(clockMs) > halfHourMs &&
  Math.abs(clockMs - Math.round(clockMs / halfHourMs) * halfHourMs) <= 120_000
const isInFuture = ({ device }: Fleet['messages'][number]) => device.clockMs > futureMaxMs

function hasAnsweredOddly({ counters }: Service): boolean {
  return oddFaults.some((kind) => counters.faults.has(kind))
}

function isFilledByKept({ stores, bytesMax }: Status['spool']): boolean {
  return stores.reduce((sum, { bytes }) => sum + bytes, 0) > (bytesMax ?? Infinity) / 2
}

function hasDoomed({ messages }: Fleet): boolean {
  return messages.some(({ device }) => device.isDoomed)
}

/** When all faults have stopped and everything had time to settle. */
export function wrongAtEnd(known: Known): string[] {
  const { fleet, services, positions, engine, status, deadLetters, circumstances, flips } = known
  const wrong = wrongSoFar(known)
  const payloads = payloadsIn(known)
  const isParked = (payloadId: string) => engine?.isParked(payloadId) === true
  const { isCopied } = payloads
  const struck = new Set([...flips.payloads.map(({ payloadId }) => payloadId), ...flips.batched])
  const deliveries = judged(services, {
    circumstances: {
      ...circumstances,
      isCopied,
      isStruck: (payloadId) => struck.has(payloadId),
      clockSetMs: fleet.clockSetMs,
    },
    deadLetters,
    struckLetters: flips.deadLetters.flatMap((payloadId) => payloadId ?? []),
  })
  const struckMessages = flips.deadLetters.filter((payloadId) => payloadId === null).length
  const {
    unmapped,
    quarantined,
    wrong: ofMessages,
  } = becameOf(fleet, { payloads, positions, flips }, deliveries)
  wrong.push(...deliveries.wrong, ...ofMessages)
  const uncounted = flips.payloads.filter(
    ({ payloadId }) => !services.some(({ records }) => records.has(payloadId)),
  )
  if (uncounted.length > flips.reports)
    wrong.push(`${uncounted.length} payloads are damaged, and ${flips.reports} were reported`)
  const { acts, troubles } = circumstances
  const ofEngine = { isParked, isThroughEngine: engine !== null }
  wrong.push(...wrongLanes(services, { ...known.lanes, fleet, payloads, positions, acts, ...ofEngine }))
  const ofPersons = acts.filter(({ kind }) => kind !== 'park')
  const submitted = services.flatMap(({ journal }) => journal.map(({ payloadIds }) => payloadIds))
  // What is left of a batch with one of them has another batchId after a restart.
  const besideStruck = new Set(submitted.filter((ids) => ids.some((id) => struck.has(id))).flat())
  const mayBeAgain = (payloadId: string) =>
    isCopied(payloadId) || isParked(payloadId) || besideStruck.has(payloadId)
  const repeats = { ...known.repeats, acts: ofPersons, troubles, isCopied: mayBeAgain }
  wrong.push(...wrongRepeats(services, repeats))
  if (engine !== null) wrong.push(...engine.wrongOrder(payloads), ...engine.wrongAtEnd())
  if (status === null) return [...wrong, 'the gateway does not run']
  for (const { code, what } of wronglyOpen(status, known)) wrong.push(`condition ${code} is open: ${what}`)
  const isDoomed = hasDoomed(fleet)
  const isDegraded = status.conditions.some(({ severity }) => severity !== 'info')
  const verdicts = [isDegraded ? 'degraded' : 'ok', ...(isDoomed ? ['not_delivering'] : [])]
  if (!verdicts.includes(status.verdict)) wrong.push(`the verdict is ${status.verdict}`)
  const open = status.lanes.reduce((sum, { pending, sealed, held }) => sum + pending + sealed + held, 0)
  if (open > 0) wrong.push(`${open} payloads still wait`)
  else if (status.spool.bytes !== 0) wrong.push(`nothing waits, and takes ${status.spool.bytes} bytes`)
  const poison = deadLetters.filter(({ stage }) => stage === 'mapping').length
  if (poison < unmapped.min - struckMessages || poison > unmapped.max)
    wrong.push(`${unmapped.min} to ${unmapped.max} dead letters of messages are right, ${poison} are there`)
  if (status.spool.quarantined < quarantined.min || status.spool.quarantined > quarantined.max)
    wrong.push(
      `${quarantined.min} to ${quarantined.max} messages in quarantine are right, ${status.spool.quarantined} are there`,
    )
  const { deadLetters: dead, quarantined: kept } = status.spool
  if (dead !== deadLetters.length)
    wrong.push(`${dead} dead letters are counted, and ${deadLetters.length} can be read`)
  const providers = services.length
  const { retryDelays } = circumstances
  wrong.push(
    ...wrongRests(known.store, {
      fleet,
      providers,
      retryDelays,
      deadLetters: dead,
      quarantined: kept,
      flips,
    }),
  )
  return wrong
}
