// deliveries.ts: what must become of each payload, by the answers that the daemon heard: a model of `delivery.errors`
// and of the rules of ingestion, made from the journals of the services.
//
//   An answer that names every payload of a batch is settled, and its batchId is not sent again.
//   A payload that failed is sent again under another batchId, after the delay of its step at the earliest.
//   A failure counts by its rule; after the last step the payload is a dead letter. It does not count in an outage: from
//   the third live batch in a row with nothing accepted, not only for Validation, until something is accepted.
//   What was accepted is not sent under another batchId, unless an answer said that it failed, or left it out twice.
//
// Where it is not known what the daemon heard, or what counts, the model has bounds: `sure` and `may`.

import type { RetryDelays, RulesChange } from '../delivery-plan.ts'
import type { PayloadRecord, Results, Service, Submission } from '../world/service.ts'

/** Of the list that the daemon shows. */
export type DeadLetter = {
  id: string
  stage: 'mapping' | 'delivery'
  reason: string
  payloadId: string | null
  requestId: string | null
}

export type OperatorAct = {
  atMs: number
  /** `park`: no act of a person; the payload waits in the message engine, and comes back. */
  kind: 'requeue' | 'purge' | 'reissue' | 'drop' | 'release' | 'park'
  /** Payloads of `requeue`, `purge` and `park`, batches of the others. */
  ids: readonly string[]
}

/** When what was answered may not have been settled: the process ended, or the disk failed. */
export type Trouble = { fromMs: number; toMs: number }

export type Circumstances = {
  retryDelays: RetryDelays
  /** Others later, with the same names. */
  rulesChange: RulesChange | null
  acts: readonly OperatorAct[]
  troubles: readonly Trouble[]
  /** A batch that may have been processed and is refused is cut: `on_refused_repeat: split`. */
  isRefusedRepeatSplit: boolean
  /** The payload may be taken again, as another one with the same payloadId. */
  isCopied: (payloadId: string) => boolean
  /** A bit of its chunk, or of its batch, has flipped. */
  isStruck: (payloadId: string) => boolean
  /**
   * A delay is one of the wall clock, over a restart; and what came into a retry lane before the clock was set back is
   * sent with all that is behind it.
   */
  clockSetMs: readonly number[]
}

export type Judged = {
  /** It is a dead letter, or was one until an operator removed it. */
  isDead(payloadId: string): boolean
  wrong: string[]
}

type Counts = { sure: Map<string, number>; may: Map<string, number> }

type PayloadState = Counts & {
  batchId: string | null
  failed: { atMs: number; delayMs: number } | null
  hasFailed: boolean
  isOver: boolean
  /** Batches that may have had an effect although another one is sent. */
  excused: Set<string | null>
}

type BatchState = {
  life: number
  submissions: number
  /** Of them, those that were refused as a whole, so no answer of before can be repeated. */
  refused: number
  payloadIds: readonly string[]
  /** The first answer that the process heard. With its store it forgets what was said so far. */
  heardMs: number | null
  settledMs: number | null
  undo: (() => void)[]
  named: Map<string, string>
  /** Answers that named some of its payloads: a dead letter shows the one that named it. */
  requestIds: Set<string>
  leftOut: Map<string, number>
  /** By answers of which it is not known whether they were heard: the next one may be the second. */
  mayBeLeftOut: Set<string>
  isUncertain: boolean
}

type Model = {
  wrong: string[]
  /** The payload must be a dead letter. */
  isOver(payloadId: string): boolean
  /** The batch may have had an effect, and another one as well. */
  isExcused(payloadId: string, batchId: string | null): boolean
  /** Why `letter` is not right; null where it is. */
  whyNotDead(letter: DeadLetter): string | null
}

const accepted = 'accepted'
/** How long a settle takes at most where nothing is in trouble. */
const settleMs = 5000
const latelyMs = 600_000
/** How long a payload is in a retry lane at most. */
const laneMs = 600_000
const emptyToOutage = 3
const refusals: readonly number[] = [400, 401, 403, 413]

/** What the services and the dead letters say, against the model of each service. */
export function judged(
  services: readonly Service[],
  {
    circumstances,
    deadLetters,
    struckLetters,
  }: {
    circumstances: Circumstances
    deadLetters: readonly DeadLetter[]
    /** Payloads whose dead letters cannot be read any more. */
    struckLetters: readonly string[]
  },
): Judged {
  const models = services.map((service) => modelOf(service, circumstances))
  const purged = circumstances.acts.flatMap(({ kind, ids }) => (kind === 'purge' ? ids : []))
  const dead = new Set([
    ...purged,
    ...struckLetters,
    ...deadLetters.flatMap(({ payloadId }) => payloadId ?? []),
  ])
  const wrong: string[] = []
  for (const { records } of services)
    for (const { payload, accepted } of records.values()) wrong.push(...ofRecord(payload, accepted))
  for (const letter of deadLetters) {
    if (letter.stage !== 'delivery') continue
    const reasons = models.map((model) => model.whyNotDead(letter))
    if (!reasons.includes(null))
      wrong.push(`${letter.payloadId} is a dead letter by ${letter.reason}: ${reasons.join('; ')}`)
  }
  for (const model of models) wrong.push(...model.wrong)
  return { isDead: (payloadId) => dead.has(payloadId), wrong }

  function ofRecord({ payloadId }: PayloadRecord['payload'], accepted: PayloadRecord['accepted']): string[] {
    const unexcused = accepted.filter(
      ({ batchId }) => !models.some((model) => model.isExcused(payloadId, batchId)),
    )
    if (unexcused.length > 1 && !circumstances.isCopied(payloadId))
      return [`payload ${payloadId} was accepted ${accepted.length} times`]
    const isOver = models.some((model) => model.isOver(payloadId))
    return isOver && !dead.has(payloadId)
      ? [`payload ${payloadId} failed in its last step, and is no dead letter`]
      : []
  }
}

function modelOf(
  { journal }: Service,
  {
    retryDelays,
    rulesChange,
    acts,
    troubles,
    isRefusedRepeatSplit,
    isCopied,
    isStruck,
    clockSetMs,
  }: Circumstances,
): Model {
  const wrong: string[] = []
  const payloads = new Map<string, PayloadState>()
  const batches = new Map<string, BatchState>()
  /** By requestId: which answers may make a dead letter of what they name as failed. */
  const mayKill = new Map<string, 'all' | 'Validation' | 'none'>()
  const byRequest = new Map<string, Submission>()
  /** Payloads of an answer 409 that perhaps came without its requestId. */
  const cutRepeats = new Set<string>()
  const service = {
    life: -1,
    emptyMin: 0,
    mayBeOutage: false,
    isOutage: false,
    acceptedMs: Number.NEGATIVE_INFINITY,
  }

  for (const { run } of eventsOf()) run()
  return {
    wrong,
    isOver: (payloadId) => payloads.get(payloadId)?.isOver === true,
    isExcused: (payloadId, batchId) => payloads.get(payloadId)?.excused.has(batchId) === true,
    whyNotDead,
  }

  function eventsOf(): { atMs: number; run: () => void }[] {
    const events: { atMs: number; run: () => void }[] = []
    for (const submission of journal) {
      events.push({ atMs: submission.atMs, run: () => received(submission) })
      const { answeredMs } = submission
      const at = answeredMs ?? submission.atMs
      events.push({ atMs: at, run: () => answered(submission, at) })
    }
    for (const act of acts) events.push({ atMs: act.atMs, run: () => acted(act) })
    for (const { toMs } of troubles) if (Number.isFinite(toMs)) events.push({ atMs: toMs, run: forgetRow })
    return events.sort((one, other) => one.atMs - other.atMs)
  }

  function received({ atMs, life, batchId, payloadIds, isStale }: Submission): void {
    // After a restart nothing has the whole batch any more: the rest comes under another batchId.
    if (payloadIds.some(isStruck)) excuse(payloadIds, batchId)
    // When it was sent is not known, only that something else may have been answered since.
    if (isStale) {
      batchOf(batchId ?? `single ${payloadIds[0]}`, payloadIds).submissions += 1
      return
    }
    if (service.life !== life)
      Object.assign(service, {
        life,
        emptyMin: 0,
        mayBeOutage: false,
        isOutage: false,
        acceptedMs: Number.NEGATIVE_INFINITY,
      })
    const id = batchId ?? `single ${payloadIds[0]}`
    const batch = batchOf(id, payloadIds)
    batch.submissions += 1
    if (batch.life !== life) {
      batch.life = life
      batch.heardMs = null
      batch.named.clear()
      batch.requestIds.clear()
      batch.leftOut.clear()
      batch.mayBeLeftOut.clear()
    }
    if (batch.settledMs !== null && batchId !== null) {
      if (!isTrouble(batch.heardMs ?? batch.settledMs, batch.settledMs))
        wrong.push(
          `batch ${batchId} was sent again, ${seconds(atMs - batch.settledMs)} after a complete answer`,
        )
      for (const undo of batch.undo) undo()
      batch.undo = []
      batch.settledMs = null
    }
    for (const payloadId of payloadIds) {
      const payload = payloadOf(payloadId)
      if (payload.batchId === id) continue
      payload.batchId = id
      if (isCopied(payloadId)) {
        Object.assign(payload, { sure: new Map(), failed: null, isOver: false })
        continue
      }
      if (payload.isOver) wrong.push(`payload ${payloadId} was sent again after its last attempt`)
      const { failed } = payload
      const isClockSet = clockSetMs.some((ms) => failed !== null && ms >= failed.atMs - laneMs && ms <= atMs)
      if (failed !== null && !isClockSet && atMs < failed.atMs + failed.delayMs)
        wrong.push(
          `payload ${payloadId} was sent again after ${seconds(atMs - failed.atMs)}; its delay is ${seconds(failed.delayMs)}`,
        )
      payload.failed = null
    }
  }

  function answered(submission: Submission, atMs: number): void {
    const { batchId, payloadIds, status, results, requestId, heard, isStale } = submission
    if (heard === 'no' || isStale) {
      if (batchId === null) excuse(payloadIds, null)
      return
    }
    if (requestId !== null) byRequest.set(requestId, submission)
    const isHeard = heard === 'yes'
    const batch = batchOf(batchId ?? `single ${payloadIds[0]}`, payloadIds)
    if (batchId === null) {
      // The single operation has no batchId that tells a second request from the first, where what was answered may
      // not be settled.
      if (!isHeard || mayHaveProcessed(status) || isTrouble(atMs)) excuse(payloadIds, null)
      if (status === 202) worked(submission, atMs)
      return
    }
    if (status === 409) {
      worked(submission, atMs)
      if (!isHeard) for (const id of payloadIds) cutRepeats.add(id)
      // What an earlier answer said of a payload stays true: what it accepted is not sent again by `on_repeat`.
      const isForgotten = batch.heardMs === null || isTrouble(batch.heardMs, atMs)
      const open = payloadIds.filter((id) => isForgotten || batch.named.get(id) !== accepted)
      excuse(open, batchId)
      // In a retry lane they show no outage.
      for (const id of open) payloadOf(id).hasFailed = true
      for (const id of payloadIds) {
        const type = batch.named.get(id) ?? (batch.leftOut.has(id) ? 'Unconfirmed' : accepted)
        if (type !== accepted) add(payloadOf(id).may, ruleOf(type), 1)
      }
      return
    }
    if (isHeard && status !== null && refusals.includes(status)) batch.refused += 1
    if ((status === 400 || status === 413) && batch.submissions > 1 && isRefusedRepeatSplit)
      excuse(payloadIds, batchId)
    if (status !== 200 || results === null) return
    batch.heardMs ??= atMs
    if (isHeard) heardWhole(batch, { submission, results, atMs })
    else heardPart(batch, { submission, results })
  }

  /** An answer that is no batch result shows as well that the service works. */
  function worked({ life }: Submission, atMs: number): void {
    service.emptyMin = 0
    if (life === service.life) service.acceptedMs = atMs
  }

  /** All of the answer may have been read, or a part, or nothing. */
  function heardPart(
    batch: BatchState,
    { submission, results }: { submission: Submission; results: Results },
  ): void {
    batch.isUncertain = true
    service.mayBeOutage = true
    service.isOutage = false
    service.emptyMin = 0
    const { life, answeredMs, requestId, payloadIds } = submission
    if (life === service.life) service.acceptedMs = answeredMs ?? service.acceptedMs
    if (requestId !== null) mayKill.set(requestId, 'all')
    for (const id of payloadIds) {
      const result = results.get(id)
      if (result === undefined) {
        if (batch.leftOut.has(id) || batch.mayBeLeftOut.has(id))
          mayHaveFailed(id, submission.batchId, 'Unconfirmed')
        batch.mayBeLeftOut.add(id)
      }
      // Perhaps it settles what an earlier answer said.
      const before = batch.named.get(id) ?? accepted
      const errorType = result === undefined || result === accepted ? before : result.errorType
      if (errorType === accepted) continue
      const payload = payloadOf(id)
      payload.hasFailed = true
      if (batch.named.get(id) !== accepted) payload.excused.add(submission.batchId)
      add(payload.may, ruleOf(errorType), 1)
    }
  }

  function mayHaveFailed(id: string, batchId: string | null, errorType: string): void {
    const payload = payloadOf(id)
    payload.hasFailed = true
    payload.excused.add(batchId)
    add(payload.may, ruleOf(errorType), 1)
  }

  /** Half an answer before may have named what this one leaves out. */
  function maySettle({ named }: BatchState, { batchId, requestId, payloadIds }: Submission): void {
    if (requestId !== null) mayKill.set(requestId, 'all')
    for (const id of payloadIds) {
      const type = named.get(id) ?? accepted
      if (type !== accepted) mayHaveFailed(id, batchId, type)
    }
  }

  type Heard = { submission: Submission; results: Results; atMs: number }

  function heardWhole(batch: BatchState, { submission, results, atMs }: Heard): void {
    const { payloadIds, requestId } = submission
    if (requestId !== null) batch.requestIds.add(requestId)
    // With its store, the process forgets which payloads an answer before named.
    const mayBeForgotten = batch.heardMs !== null && isTrouble(batch.heardMs, atMs)
    for (const id of payloadIds) {
      const result = results.get(id)
      if (result === undefined) batch.leftOut.set(id, (batch.leftOut.get(id) ?? 0) + 1)
      else if (result === accepted) batch.named.set(id, accepted)
      else if (batch.named.get(id) !== accepted) {
        batch.named.set(id, result.errorType)
        payloadOf(id).excused.add(submission.batchId)
      } else if (mayBeForgotten) mayHaveFailed(id, submission.batchId, result.errorType)
      if (mayBeForgotten && (batch.leftOut.get(id) ?? 0) > 1)
        mayHaveFailed(id, submission.batchId, 'Unconfirmed')
    }
    const missing = payloadIds.filter((id) => !batch.named.has(id))
    if (missing.length > 0) {
      service.isOutage = false
      for (const id of missing) {
        if (!batch.mayBeLeftOut.has(id)) continue
        mayHaveFailed(id, submission.batchId, 'Unconfirmed')
        if (requestId !== null) mayKill.set(requestId, 'all')
      }
      if (missing.length === payloadIds.length || missing.some((id) => (batch.leftOut.get(id) ?? 0) < 2)) {
        if (batch.isUncertain) maySettle(batch, submission)
        return
      }
      for (const id of missing) {
        batch.named.set(id, 'Unconfirmed')
        payloadOf(id).excused.add(submission.batchId)
      }
      batch.isUncertain = true
    }
    settle(batch, { submission, atMs })
  }

  function settle(batch: BatchState, { submission, atMs }: Omit<Heard, 'results'>): void {
    const { payloadIds, life } = submission
    const types = payloadIds.map((id) => batch.named.get(id) ?? accepted).filter((type) => type !== accepted)
    const isEmpty = types.length === payloadIds.length
    const isOfValidation = types.every((type) => type === 'Validation')
    const isLive = payloadIds.every((id) => !payloadOf(id).hasFailed)
    if (isEmpty && isLive) service.emptyMin += 1
    const isOutage = isEmpty && !isOfValidation && service.emptyMin >= emptyToOutage
    const isProven =
      service.life === life && atMs - service.acceptedMs < latelyMs && batch.submissions - batch.refused === 1
    const counts =
      isOutage || service.isOutage
        ? 'no'
        : service.mayBeOutage || (isEmpty && !isOfValidation)
          ? 'may'
          : 'sure'
    for (const requestId of batch.requestIds)
      mayKill.set(requestId, counts === 'no' ? 'none' : !isEmpty || isProven ? 'all' : 'Validation')
    service.isOutage = isOutage
    if (isEmpty) service.mayBeOutage ||= !isOfValidation
    else Object.assign(service, { emptyMin: 0, mayBeOutage: false, acceptedMs: atMs })
    batch.settledMs = atMs
    for (const id of payloadIds) {
      const type = batch.named.get(id) ?? accepted
      if (type !== accepted)
        failed(batch, payloadOf(id), {
          type,
          atMs,
          counts: batch.isUncertain && counts === 'sure' ? 'may' : counts,
        })
    }
  }

  function failed(
    batch: BatchState,
    payload: PayloadState,
    { type, atMs, counts }: { type: string; atMs: number; counts: 'sure' | 'may' | 'no' },
  ): void {
    const rule = ruleOf(type)
    const before = payload.sure.get(rule) ?? 0
    // A change of the rules holds for what waits, too.
    const delayMs = Math.min(
      ...rulesFrom(atMs).map(({ [rule]: delays = [] }) => {
        return delays[counts === 'sure' ? Math.min(before, delays.length - 1) : 0] ?? 0
      }),
    )
    payload.hasFailed = true
    payload.failed = { atMs, delayMs }
    const sure = counts === 'sure' ? 1 : 0
    const may = counts === 'no' ? 0 : 1
    add(payload.sure, rule, sure)
    add(payload.may, rule, may)
    const total = sumOf(payload.sure)
    payload.isOver = rulesAt(atMs).every(
      (rules) => (payload.sure.get(rule) ?? 0) > (rules[rule]?.length ?? 0) || total > stepsOf(rules),
    )
    batch.undo.push(() => {
      payload.failed = null
      payload.isOver = false
      add(payload.sure, rule, -sure)
    })
  }

  /** With its store, the process may have lost what it knew of the last answers. */
  function forgetRow(): void {
    service.mayBeOutage ||= service.emptyMin > 0 || service.isOutage
    Object.assign(service, { emptyMin: 0, isOutage: false })
  }

  function acted({ kind, ids }: OperatorAct): void {
    if (kind === 'requeue' || kind === 'park')
      for (const id of ids) Object.assign(payloadOf(id), { sure: new Map(), failed: null, isOver: false })
    // What is dropped becomes a dead letter, which a person may requeue.
    if (kind === 'reissue' || kind === 'drop')
      for (const id of ids) excuse(batches.get(id)?.payloadIds ?? [], id)
  }

  function whyNotDead({ payloadId, reason, requestId }: DeadLetter): string | null {
    if (reason === 'DROPPED_BY_OPERATOR')
      return acts.some(({ kind }) => kind === 'drop') ? null : 'nobody dropped it'
    if (requestId === null && cutRepeats.has(payloadId ?? '')) return null
    const of = byRequest.get(requestId ?? '')
    if (payloadId === null || of === undefined)
      return `no answer of the service made it a dead letter (${requestId})`
    if (reason === 'Refused')
      return of.batchId === null && (of.status === 400 || of.status === 413)
        ? null
        : 'it was not refused alone'
    if (of.status === 409) return null
    // Of several answers to a batch, the last one is that of all its payloads.
    const result = of.results?.get(payloadId)
    const earlier = batches.get(of.batchId ?? '')?.named.get(payloadId)
    const type = result === undefined || result === accepted ? earlier : result.errorType
    // Half an answer before it may have said so, and the last one leaves the payload out.
    const isSaid = [...byRequest.values()].some((one) => {
      const said = one.batchId === of.batchId && one.isHalf ? one.results?.get(payloadId) : undefined
      return said !== undefined && said !== accepted && said.errorType === reason
    })
    if (reason !== 'Unconfirmed' && type !== reason && !isSaid)
      return `the answer ${requestId} does not say so`
    const rule = ruleOf(reason)
    const may = payloadOf(payloadId).may
    const total = sumOf(may)
    const mayBeOver = (rules: RetryDelays) =>
      (may.get(rule) ?? 0) > (rules[rule]?.length ?? 0) || total > stepsOf(rules)
    if (!rulesFrom(0).some(mayBeOver))
      return `it failed at most ${may.get(rule) ?? 0} times in a way that counts`
    const kills = mayKill.get(requestId ?? '')
    // Validation is the fault of the payload, whatever else failed in its batch.
    return kills === 'all' || (kills === 'Validation' && reason === 'Validation')
      ? null
      : `the answer ${requestId} belongs to an outage, or may repeat one`
  }

  function excuse(payloadIds: readonly string[], batchId: string | null): void {
    for (const id of payloadIds) payloadOf(id).excused.add(batchId)
  }

  function batchOf(id: string, payloadIds: readonly string[]): BatchState {
    let batch = batches.get(id)
    if (batch === undefined)
      batches.set(
        id,
        (batch = {
          life: -1,
          submissions: 0,
          refused: 0,
          payloadIds,
          heardMs: null,
          settledMs: null,
          undo: [],
          named: new Map(),
          requestIds: new Set(),
          leftOut: new Map(),
          mayBeLeftOut: new Set(),
          isUncertain: false,
        }),
      )
    return batch
  }

  function payloadOf(id: string): PayloadState {
    let payload = payloads.get(id)
    if (payload === undefined)
      payloads.set(
        id,
        (payload = {
          sure: new Map(),
          may: new Map(),
          batchId: null,
          failed: null,
          hasFailed: false,
          isOver: false,
          excused: new Set(),
        }),
      )
    return payload
  }

  /** Those that may judge an answer of then. */
  function rulesAt(atMs: number): RetryDelays[] {
    if (rulesChange === null || atMs < rulesChange.atMs - settleMs) return [retryDelays]
    return atMs < rulesChange.atMs + settleMs
      ? [retryDelays, rulesChange.retryDelays]
      : [rulesChange.retryDelays]
  }

  /** Those of then and later. */
  function rulesFrom(atMs: number): RetryDelays[] {
    return [...rulesAt(atMs), ...(rulesChange === null ? [] : [rulesChange.retryDelays])]
  }

  function ruleOf(errorType: string): string {
    return errorType in retryDelays ? errorType : 'default'
  }

  function isTrouble(firstMs: number, lastMs = firstMs): boolean {
    return troubles.some(({ fromMs, toMs }) => fromMs <= lastMs + settleMs && toMs >= firstMs)
  }
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

function stepsOf(rules: RetryDelays): number {
  return Object.values(rules).reduce((sum, { length }) => sum + length, 0)
}

function mayHaveProcessed(status: number | null): boolean {
  return status !== null && (status >= 500 || status === 408 || status === 429)
}

function add(counts: Map<string, number>, rule: string, count: number): void {
  counts.set(rule, (counts.get(rule) ?? 0) + count)
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(3)} s`
}
