// delivery-steps.ts: what is published, what the service answers and what time passes, and what delivery must have done
// then, as the steps of step-cases.ts, over delivery-world.ts.

import { expect, onTestFinished } from 'vitest'
import type { BatchAction, BatchRequest } from '../../src/delivery/types.ts'
import type { ReturnedPayload } from '../../src/delivery/delivery.ts'
import type { StateCode } from '../../src/domain/condition-state.ts'
import type { GatewayEvent } from '../../src/domain/event.ts'
import type { HeldReason } from '../../src/domain/held.ts'
import type { LaneId, ProviderName } from '../../src/domain/ids.ts'
import { decodeReceipt } from '../../src/receipts/receipts.ts'
import { GatewayError } from '../../src/std/gateway-error.ts'
import type { Batch } from '../../src/spool/spool.ts'
import { createDeliveryWorld, type DeliveryWorld } from './delivery-world.ts'
import { collect, ended } from './open-spool.ts'
import {
  acceptAll,
  breakdown,
  failAll,
  remembering,
  type Received,
  type Reply,
  type repeatModes,
  type Script,
} from './scripted-service.ts'
import { deadLetterNamed, exchangeOf, payloadNamed } from './spool-world.ts'

/** A number is a status; `fail`: each payload fails with this type. */
type Plain =
  'accept' | 'hang' | 'reset' | 'no connection' | number | { fail: string } | Exclude<Reply, string>

/** What the service answers, by what the request is. */
type Answer =
  | Plain
  /** The requests of the test in their order; the last one answers all that follow. */
  | { each: Answer[] }
  /** To the first request with a batchId, and to those that repeat it. */
  | { once: Answer; again: Answer }
  /** With a payload of such a name, or of a name that begins so. */
  | { named: string; answer: Answer; others?: Answer }
  /** With this payload, or one of which the name ends with a number that leaves this rest. */
  | { exactly: string; answer: Answer; others?: Answer }
  | { every: number; rest: number; answer: Answer; others?: Answer }
  | { provider: string; answer: Answer; others?: Answer }
  | { largerThan: number; answer: Answer; others?: Answer }
  /** By the operation. */
  | { single: Answer; batch: Answer }
  /** A batch that is held. */
  | { held: Answer; others?: Answer }
  /** Payloads whose names begin so fail, the others of the batch are accepted. */
  | { failing: string; as: string }
  /** The first payload of a batch is accepted, and no other is named. */
  | { acceptsFirstOnly: true }
  /** With the time of a clock that is so far ahead. */
  | { aheadMs: number; answer: Answer }

type Given =
  | (Omit<NonNullable<Parameters<typeof createDeliveryWorld>[0]>, 'script' | 'startNow'> & {
      service?: Answer
      start?: boolean
      /** What the service does with a batchId that it knows, whatever it answers others. */
      remembers?: (typeof repeatModes)[number]
      /** The delays of each type of error. */
      retries?: Record<string, number[]>
    })
  | undefined

type World = {
  w: DeliveryWorld
  given: Given
  names: Map<string, string>
  held: Batch[]
  /** What the service answers requests that it does not remember. */
  script: Script
  /** What was sent and delivered at the last `mark`. */
  marked: { sent: number; delivered: number }
  returning: { confirm: () => void; returned: Promise<number> } | null
}

type Amount = number | { least?: number; most?: number }
type Returned = {
  olderThanMs?: number
  payloadsMax?: number
  down?: string[]
  names?: string[]
  fails?: string
}
type Run = {
  action: BatchAction
  of?: number[]
  result?: object
  fails?: string
}

const never = new AbortController().signal

function scriptOf(one: World, answer: Answer): Script {
  if (typeof answer === 'number')
    return () => ({ status: answer, body: { requestId: 'request-9', message: `answer ${answer}` } })
  if (answer === 'accept') return acceptAll
  if (typeof answer === 'string') return () => answer
  if ('fail' in answer) return failAll(answer.fail)
  if ('each' in answer) {
    const scripts = answer.each.map((next) => scriptOf(one, next))
    let asked = -1
    return (...request) => {
      asked += 1
      return scripts[Math.min(asked, scripts.length - 1)]!(...request)
    }
  }
  if ('once' in answer) {
    const seen = new Set<string>()
    const isNew = ({ batchId }: Received) => !seen.has(batchId) && seen.add(batchId).size > 0
    return where(one, isNew, answer.once, answer.again)
  }
  if ('named' in answer) {
    const nameOf = (id: string) => one.names.get(id) ?? ''
    const has = ({ payloadIds }: Received) => payloadIds.some((id) => nameOf(id).startsWith(answer.named))
    return where(one, has, answer.answer, answer.others)
  }
  if ('exactly' in answer) {
    const { payloadId } = payloadNamed(answer.exactly)
    const has = ({ payloadIds }: Received) => payloadIds.includes(payloadId)
    return where(one, has, answer.answer, answer.others)
  }
  if ('every' in answer) {
    const numberOf = (id: string) => Number(/\d+$/.exec(one.names.get(id) ?? '')?.[0])
    const has = ({ payloadIds }: Received) =>
      payloadIds.some((id) => numberOf(id) % answer.every === answer.rest)
    return where(one, has, answer.answer, answer.others)
  }
  if ('largerThan' in answer)
    return where(one, ({ body }) => body.length > answer.largerThan, answer.answer, answer.others)
  if ('single' in answer) return where(one, ({ single }) => single, answer.single, answer.batch)
  if ('provider' in answer) {
    const isOf = ({ headers }: Received) => headers['x-provider-key'] === answer.provider
    return where(one, isOf, answer.answer, answer.others)
  }
  if ('held' in answer) {
    const isHeld = ({ batchId }: Received) => one.held.some((batch) => batch.batchId === batchId)
    return where(one, isHeld, answer.held, answer.others)
  }
  if ('failing' in answer)
    return ({ payloadIds }) => {
      const isFailing = (id: string) => one.names.get(id)?.startsWith(answer.failing) === true
      const failed = payloadIds.filter(isFailing).map((payloadId) => ({ payloadId, errorType: answer.as }))
      return breakdown({ accepted: payloadIds.filter((id) => !isFailing(id)), failed })
    }
  if ('acceptsFirstOnly' in answer)
    return ({ payloadIds }) => breakdown({ accepted: payloadIds.slice(0, 1), failed: [] })
  if ('aheadMs' in answer) {
    const script = scriptOf(one, answer.answer)
    return (...request) => {
      const reply = script(...request)
      const date = new Date(one.w.clock.now() + answer.aheadMs).toUTCString()
      return typeof reply === 'object' && 'status' in reply ? { ...reply, headers: { date } } : reply
    }
  }
  return () => answer
}

function where(
  one: World,
  holds: (received: Received) => boolean,
  then: Answer,
  others: Answer = 'accept',
): Script {
  const scripts = [scriptOf(one, then), scriptOf(one, others)] as const
  return (received, index) => scripts[holds(received) ? 0 : 1](received, index)
}

async function openWorld(one: World): Promise<void> {
  const { service = 'accept', start = true, remembers, retries, provider = {}, ...options } = one.given ?? {}
  const retryRules = retries && { retryRules: new Map(Object.entries(retries)) }
  const world = await createDeliveryWorld({
    ...options,
    provider: { ...provider, ...retryRules },
    startNow: false,
  })
  onTestFinished(() => world.end())
  one.w = world
  one.script = scriptOf(one, service)
  const script: Script = (...received) => one.script(...received)
  world.service.answer(remembers === undefined ? script : remembering(remembers, script))
  if (start) world.delivery.start()
}

export async function startDelivery(given: Given): Promise<World> {
  const marked = { sent: 0, delivered: 0 }
  const one = { given, names: new Map(), held: [], marked, returning: null } as unknown as World
  await openWorld(one)
  return one
}

const open = ({ w }: World) => w.spool.lanes().reduce((sum, { pending, sealed }) => sum + pending + sealed, 0)

function isAmount(what: string, found: number, amount: Amount): void {
  const { least, most } = typeof amount === 'number' ? { least: amount, most: amount } : amount
  if (least !== undefined) expect(found, what).toBeGreaterThanOrEqual(least)
  if (most !== undefined) expect(found, what).toBeLessThanOrEqual(most)
}

function publish(one: World, names: readonly string[], provider = 'default') {
  for (const name of names) one.names.set(payloadNamed(name, { provider }).payloadId, name)
  return one.w.publishFor(provider, ...names)
}

const namesOf = (one: World, ids: readonly string[]) => ids.map((id) => one.names.get(id))

function requestReturn(
  { w }: World,
  request: Returned,
  hand: (all: readonly ReturnedPayload[]) => Promise<void>,
) {
  const { olderThanMs = 60_000, payloadsMax = 500, down = [] } = request
  const providersDown = down as ProviderName[]
  return w.delivery.returns.returnWaiting({ olderThanMs, payloadsMax, providersDown }, hand, never)
}

export const deliveryWords = {
  /** One message. */
  publish: (one: World, names: string[]) => publish(one, names),
  publishFor: (one: World, [provider, ...names]: string[]) => publish(one, names, provider),
  /** Messages of three payloads each, `p0-a` and so on. */
  batches: async (
    one: World,
    {
      count,
      name = 'p',
      everyMs = 0,
      provider,
    }: { count: number; name?: string; everyMs?: number; provider?: string },
  ) => {
    for (let n = 0; n < count; n += 1) {
      await publish(one, [`${name}${n}-a`, `${name}${n}-b`, `${name}${n}-c`], provider)
      if (everyMs > 0) await one.w.pass(everyMs)
    }
  },
  /** Messages of `per` payloads: `name-0` and so on. */
  many: async (
    one: World,
    { count, name = 'truck', per = count }: { count: number; name?: string; per?: number },
  ) => {
    const names = Array.from({ length: count }, (_, index) => `${name}-${index}`)
    for (let at = 0; at < count; at += per) await publish(one, names.slice(at, at + per))
  },
  answer: (one: World, answer: Answer) => {
    one.script = scriptOf(one, answer)
  },
  start: ({ w }: World) => w.delivery.start(),
  stop: ({ w }: World) => w.delivery.stop(AbortSignal.abort()),
  pass: ({ w }: World, ms: number) => w.pass(ms),
  quiet: ({ w }: World) => w.quiet(),
  stepWall: ({ w }: World, ms: number) => w.clock.stepWall(ms),
  probe: ({ w }: World) => w.delivery.probe(),
  crash: ({ w }: World) => w.crash(),
  /** The same from the beginning. */
  again: async (one: World) => {
    await one.w.end()
    await openWorld(one)
  },
  /** Passes time until the endpoint is in this state. */
  until: async ({ w }: World, endpoint: string) => {
    while (w.delivery.providers()[0]?.endpoint !== endpoint) await w.pass(10)
  },
  /** Seals what is pending in the first lane; `held`: and holds it for this reason. */
  seal: async (one: World, { payloadsMax = 3, held }: { payloadsMax?: number; held?: HeldReason }) => {
    const { spool, clock } = one.w
    const batch = await spool.seal(1 as LaneId, { payloadsMax, bodyBytesMax: 1024 ** 2 })
    if (held === undefined) return
    const n = one.held.length
    const cause = { reason: held, since: clock.now() + n, requestId: `r-${n}`, why: 'HTTP 409' }
    one.held.push(await spool.setHeld(batch!, cause))
  },
  failNextWrite: ({ w }: World, reachesDisk: boolean) => w.disk.failNextWrite({ reachesDisk }),
  holdDisk: ({ w }: World, held: boolean) => (held ? w.disk.hold() : w.disk.release()),
  /** Lets everything that needs no time end, also while writes wait. */
  settleDown: async ({ w }: World) => {
    for (let turn = 0; turn < 100; turn += 1) await w.clock.advance(0)
  },

  fillDeadLetters: async ({ w: { spool } }: World) => {
    for (let n = 0; !spool.deadLettersFull() && n < 1000; n += 1) {
      spool.addDeadLetter({ ...deadLetterNamed(`${n}`).deadLetter, detail: 'x'.repeat(1000) + n })
      expect(await ended(spool)).toBeNull()
    }
    expect(spool.deadLettersFull()).toBe(true)
  },
  makeRoom: async ({ w: { spool } }: World) => {
    const letters = await collect(spool.deadLetters({ limit: 10_000, stage: 'mapping' }))
    await spool.exchange(exchangeOf({ take: letters.map(({ id }) => id) }))
    expect(spool.deadLettersFull()).toBe(false)
  },
  /** The process ends with the next answer: its settle is not written. */
  endsAtSettle: ({ w }: World) => {
    const closed = new GatewayError('SPOOL_CLOSED', { what: 'Not written.', why: 'The end.', act: 'none' })
    w.spool.settle = () => Promise.reject(closed)
  },
  /** Batches of 24 KB of this provider until it stands still because the dead letters are full. */
  publishUntilFull: async (one: World, provider: string) => {
    const isFull = () => one.w.states('DELIVERY_STALLED').some(({ reason }) => reason === 'dead_letters_full')
    for (let n = 0; n < 2000 && !isFull(); n += 1) {
      await publish(
        one,
        ['a', 'b', 'c'].map((name) => `${name}${n}${'x'.repeat(8000)}`),
        provider,
      )
      await one.w.pass(1100)
    }
    expect(isFull()).toBe(true)
  },
  /** Bytes in lanes of retries. */
  retryBytes: ({ w }: World, amount: Amount) => {
    const lanes = w.spool.lanes().filter(({ role }) => role.kind === 'retry')
    isAmount(
      'bytes',
      lanes.reduce((sum, { pendingBytes, sealedBytes }) => sum + pendingBytes + sealedBytes, 0),
      amount,
    )
  },

  // ---- what an operator does with batches
  /** `of`: indexes of the batches that were held. */
  run: async ({ w, held }: World, { action, of, result = {}, fails }: Run) => {
    const ids = of?.map((index) => held[index]!.batchId)
    const operator = { user: 'root', sudoUser: 'alice' }
    const selection: BatchRequest['selection'] = ids === undefined ? {} : { ids }
    const done = w.delivery.batches.run({ action, selection, parts: null, dryRun: false, operator }, never)
    if (fails === undefined) expect(await done).toMatchObject(result)
    else await expect(done).rejects.toMatchObject({ code: fails })
  },
  /** On each batch that is there. */
  runOnAll: async ({ w }: World, { action, result = {} }: Run) => {
    const ids = w.spool.batches().map(({ batchId }) => batchId)
    const operator = { user: 'root', sudoUser: 'alice' }
    const request = { action, selection: { ids }, parts: null, dryRun: false, operator }
    expect(await w.delivery.batches.run(request, never)).toMatchObject(result)
  },
  /** Its end is not waited for before the batches are tried. */
  runAndProbe: async ({ w, held }: World, action: BatchAction) => {
    const ids = held.map(({ batchId }) => batchId)
    const operator = { user: 'root', sudoUser: 'alice' }
    const request = { action, selection: { ids }, parts: null, dryRun: false, operator }
    const done = w.delivery.batches.run(request, never)
    w.delivery.probe()
    await done
  },
  list: ({ w }: World, expected: object) => expect(w.delivery.batches.list({}, 100)).toMatchObject(expected),
  show: async ({ w, held }: World, [index, expected]: [number, object]) =>
    expect(await w.delivery.batches.show(held[index]!.batchId)).toMatchObject(expected),
  showsNone: async ({ w }: World, id: string) => expect(await w.delivery.batches.show(id)).toBeNull(),
  /** Reasons of those that are held. */
  held: ({ w }: World, reasons: string[]) =>
    expect(w.spool.batches().flatMap(({ held }) => held?.reason ?? [])).toEqual(reasons),

  /** More than so many, and the condition says how many. */
  manyHeld: ({ w }: World, [reason, moreThan]: [HeldReason, number]) => {
    const { heldBatches } = w.spool.totals()
    expect(heldBatches).toBeGreaterThan(moreThan)
    expect(w.states('BATCHES_HELD')).toMatchObject([{ reason, batches: heldBatches, requestId: 'request-9' }])
  },

  // ---- what is returned to the engine
  returns: async (one: World, request: Returned) => {
    const kept: ReturnedPayload[] = []
    const { names = [], fails } = request
    const returned = requestReturn(one, request, (payloads) =>
      fails === 'full' ? Promise.reject(new Error('full')) : Promise.resolve(void kept.push(...payloads)),
    )
    if (fails === 'full') return expect(returned).rejects.toThrow('full')
    if (fails !== undefined) return expect(returned).rejects.toMatchObject({ code: fails })
    expect(await returned).toBe(names.length)
    expect(
      namesOf(
        one,
        kept.map(({ payloadId }) => payloadId),
      ),
    ).toEqual(names)
    for (const { json } of kept) expect(json.toString()).toContain('"payloadId"')
  },
  /** Some of `all` payloads, and none that was in a request; the others are still here. */
  returnsUnsent: async (one: World, { down, all }: { down: string[]; all: number }) => {
    const ids: string[] = []
    const count = await requestReturn(one, { down }, (payloads) =>
      Promise.resolve(void ids.push(...payloads.map(({ payloadId }) => payloadId))),
    )
    expect(count).toBeGreaterThan(0)
    const sent = new Set(one.w.service.received.flatMap(({ payloadIds }) => payloadIds))
    expect(ids.filter((id) => sent.has(id))).toEqual([])
    expect(one.w.spool.totals().returned).toBe(count)
    expect(open(one) + count).toBe(all)
  },
  /** The engine has not confirmed. */
  beginReturn: (one: World) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    one.returning = { confirm: resolve, returned: requestReturn(one, {}, () => promise) }
  },
  endReturn: async ({ returning }: World, count: number) => {
    returning!.confirm()
    expect(await returning!.returned).toBe(count)
  },
  receipts: async ({ w }: World, expected: string[]) => {
    const receipts = await w.spool.receipts({ limit: 100 })
    const found = receipts.flatMap(({ value }) => {
      const receipt = decodeReceipt(value)!
      return Array.from({ length: receipt.entries.count }, (_, index) => {
        const { outcome, reason } = receipt.settlement(index)
        return `${outcome} ${reason} ${receipt.entries.at(index).device}`
      })
    })
    expect(found).toEqual(expected)
  },

  // ---- what must be
  codes: ({ w }: World, codes: string[]) => expect(w.codes()).toEqual(codes),
  hasCode: ({ w }: World, code: string) => expect(w.codes()).toContain(code),
  hasNotCode: ({ w }: World, code: string) => expect(w.codes()).not.toContain(code),
  /** Each ten seconds; a condition that stands still for long is no gap. */
  alwaysHasCodeFor: async ({ w }: World, ms: number) => {
    const silent: number[] = []
    for (let passedMs = 0; passedMs < ms; passedMs += 10_000) {
      if (w.codes().length === 0) silent.push(passedMs)
      await w.pass(10_000)
    }
    expect(silent).toEqual([])
  },
  condition: ({ w }: World, expected: { code: string }) =>
    expect(w.conditions().find(({ code }) => code === expected.code)).toMatchObject(expected),
  changes: ({ w }: World, expected: Partial<Record<StateCode, { raised?: Amount; cleared?: Amount }>>) => {
    for (const [code, { raised, cleared }] of Object.entries(expected)) {
      const found = w.changes(code as StateCode)
      if (raised !== undefined) isAmount(`raised ${code}`, found.raised, raised)
      if (cleared !== undefined) isAmount(`cleared ${code}`, found.cleared, cleared)
    }
  },
  states: ({ w }: World, expected: Partial<Record<StateCode, object[]>>) => {
    for (const [code, of] of Object.entries(expected))
      expect(w.states(code as StateCode), code).toMatchObject(of)
  },
  events: ({ w }: World, expected: Partial<Record<GatewayEvent['kind'], object[] | Amount>>) => {
    for (const [kind, of] of Object.entries(expected)) {
      const found = w.ofKind(kind as GatewayEvent['kind'])
      if (Array.isArray(of)) expect(found, kind).toMatchObject(of)
      else isAmount(kind, found.length, of)
    }
  },
  totals: ({ w }: World, expected: object) => expect(w.spool.totals()).toMatchObject(expected),
  counters: ({ w }: World, expected: object) => expect(w.delivery.counters()).toMatchObject(expected),
  provider: ({ w }: World, expected: object) => expect(w.delivery.providers()[0]).toMatchObject(expected),
  /** Of the first lane with this role. */
  lane: ({ w }: World, [role, expected]: [string, object]) =>
    expect(w.spool.lanes().find((lane) => lane.role.kind === role)).toMatchObject(expected),
  nextTryWithin: ({ w }: World, ms: number) => {
    const at = w.delivery.providers()[0]?.nextAttemptAt ?? null
    expect(at).not.toBeNull()
    isAmount('time to the next try', at! - w.clock.now(), { least: 1, most: ms })
  },
  open: (one: World, amount: Amount) => isAmount('open', open(one), amount),
  deadLetters: async (one: World, names: string[]) => {
    const letters = await collect(one.w.spool.deadLetters({ limit: 100 }))
    expect(letters.map(({ deadLetter }) => one.names.get(deadLetter.payloadId ?? ''))).toEqual(names)
  },
  deadLetter: async (one: World, expected: object) => {
    const [letter] = await collect(one.w.spool.deadLetters({ limit: 1 }))
    expect(letter?.deadLetter).toMatchObject(expected)
  },
  /** Requests by the operation for one payload; beside those and the first one of each batch, at most so many others. */
  cost: ({ w }: World, { singles, othersMost }: { singles: number; othersMost: number }) => {
    const { received } = w.service
    expect(received.filter(({ single }) => single)).toHaveLength(singles)
    const others = received.length - singles - w.ofKind('batch_sealed').length
    expect(others).toBeLessThanOrEqual(othersMost)
  },
  /** Requests with larger bodies since the last `mark`. */
  sentLarger: ({ w, marked }: World, [bytes, amount]: [number, Amount]) =>
    isAmount(
      'larger',
      w.service.received.slice(marked.sent).filter(({ body }) => body.length > bytes).length,
      amount,
    ),
  mark: (one: World) => {
    one.marked = { sent: one.w.service.received.length, delivered: one.w.spool.totals().delivered }
  },
  /** Requests since the last `mark`, and payloads that were delivered. */
  sent: ({ w, marked }: World, amount: Amount) =>
    isAmount('sent', w.service.received.length - marked.sent, amount),
  delivered: ({ w, marked }: World, amount: Amount) =>
    isAmount('delivered', w.spool.totals().delivered - marked.delivered, amount),
  /** Names in each request since the last `mark`. */
  sentNames: (one: World, names: string[][]) =>
    expect(
      one.w.service.received.slice(one.marked.sent).map(({ payloadIds }) => namesOf(one, payloadIds)),
    ).toEqual(names),
  /** Of the first requests since the last `mark`, those whose first payload has a name that begins so. */
  firstSent: ({ w, names, marked }: World, [count, name, amount]: [number, string, Amount]) => {
    const first = w.service.received.slice(marked.sent, marked.sent + count)
    const found = first.filter(({ payloadIds }) => names.get(payloadIds[0] ?? '')?.startsWith(name))
    isAmount(`first with ${name}`, found.length, amount)
  },
  /** Requests since the last `mark` with a payload of this name, and their batchIds. */
  sentWith: (one: World, [name, requests, batchIds]: [string, Amount, number]) => {
    const id = payloadNamed(name).payloadId
    const sent = one.w.service.received
      .slice(one.marked.sent)
      .filter(({ payloadIds }) => payloadIds.includes(id))
    isAmount(`requests with ${name}`, sent.length, requests)
    expect(new Set(sent.map(({ batchId }) => batchId)).size).toBe(batchIds)
  },
  /** The batches that were held, and no other, since the last `mark`. */
  sentHeld: ({ w, held, marked }: World) =>
    expect(
      w.service.received
        .slice(marked.sent)
        .map(({ batchId }) => batchId)
        .toSorted(),
    ).toEqual(held.map(({ batchId }) => batchId).toSorted()),
  /** By how much the timestamps of the requests from this one on are ahead of the clock. */
  timestampsAhead: ({ w }: World, [from, aheadMs]: [number, number]) => {
    const sent = w.service.received.slice(from)
    expect(sent.length).toBeGreaterThan(0)
    for (const { body } of sent) {
      const { timestamp } = JSON.parse(body.toString('utf8')) as { timestamp: number }
      expect(Math.abs(timestamp - w.clock.now() - aheadMs)).toBeLessThan(5000)
    }
  },
  /** No batchId was sent twice. */
  noneTwice: ({ w }: World) => {
    const ids = w.service.received.filter(({ single }) => !single).map(({ batchId }) => batchId)
    expect(new Set(ids).size).toBe(ids.length)
  },
  hanging: ({ w }: World, count: number) => expect(w.service.hanging()).toBe(count),
  openRequests: ({ w }: World, count: number) => expect(w.service.open()).toBe(count),
  mostOpen: ({ w }: World, amount: Amount) => isAmount('open at once', w.service.mostOpen(), amount),
  batchSizes: ({ w }: World, [sizes, count]: [Amount, Amount]) => {
    const found = w.ofKind('batch_sealed')
    isAmount('batches', found.length, count)
    for (const { payloads } of found) isAmount('payloads of a batch', payloads, sizes)
  },
}
