// import-plan.ts: what an import must not send again. A file is read twice: the first time its payloadIds are
// collected, then the spool and the ledger are read once, and the second time the rest is imported. So a
// million lines cost two walks and not one walk for each part of the file.
//
//   plan (each part of the file) -> check (once) -> import (each part again)
//
// The spool is read before the ledger: a payload that is delivered in between is in one of them at least. One
// import exists at a time, and its calls run one after the other: a new import waits for the running write
// of the previous one, and takes its place. A plan that is not used for `idleMs` is forgotten, since it holds
// memory.

import { hash } from 'node:crypto'
import type { CancelTimer, EpochMs } from '../std/clock.ts'
import { GatewayError } from '../std/gateway-error.ts'
import { propertiesText, type Envelope } from '../domain/message.ts'
import { createPayloadIdSet } from './payload-id-set.ts'
import type { DeadLetterDeps, ImportCheck } from './types.ts'

/** A device time, or that some payloads have none. */
type DeviceTime = EpochMs | null

export type ImportPlan = {
  readonly token: string
  readonly size: number
  add(payloadId: string, deviceTime: DeviceTime): void
  addMessage(envelope: Envelope): void
  check(options: { withoutLedger: boolean }, signal: AbortSignal): Promise<ImportCheck>
  readonly checked: boolean
  /** What is known of an id; `new` becomes `imported` with this call. Null where it is not in the plan. */
  take(payloadId: string): 'new' | 'stored' | 'delivered' | 'imported' | null
  isStored(envelope: Envelope): boolean
}

export type ImportPlans = {
  /** Runs `work` after the calls before it. Without a token, a new plan replaces the present one. */
  inTurn<Result>(token: string | undefined, work: (plan: ImportPlan) => Promise<Result>): Promise<Result>
}

/** 64 MiB of ids at most. The command begins a new plan long before. */
export const plannedMax = 4 * 1024 * 1024
const idleMs = 600_000

const stored = 1
const delivered = 2
const imported = 4

export function createImportPlans(deps: DeadLetterDeps): ImportPlans {
  const { clock } = deps
  let present: ImportPlan | null = null
  let last: Promise<unknown> = Promise.resolve()
  let started = 0
  let cancel: CancelTimer = () => {}

  return {
    inTurn(token, work) {
      const result = last.then(() => work(planOf(token))).finally(forgetLater)
      // The caller gets the failure; the next call only waits for the end.
      last = result.catch(() => undefined)
      return result
    },
  }

  function planOf(token: string | undefined): ImportPlan {
    cancel()
    if (token === undefined) {
      started += 1
      present = createPlan(deps, `${clock.now()}.${started}`)
    }
    if (present !== null && (token === undefined || token === present.token)) return present
    throw new GatewayError('IMPORT_ENDED', {
      what: 'The import does not exist.',
      why: 'The daemon was restarted, another import was started, or the command paused for too long.',
      act: 'Give the same command again. It continues where it stopped.',
    })
  }

  function forgetLater(): void {
    cancel()
    cancel = clock.after(idleMs, () => {
      present = null
    })
  }
}

function createPlan({ spool, delivered: deliveredIn }: DeadLetterDeps, token: string): ImportPlan {
  const ids = createPayloadIdSet()
  let flags = new Uint8Array(1024)
  let from = Number.POSITIVE_INFINITY
  let to = Number.NEGATIVE_INFINITY
  let hasMessages = false
  let checked = false

  return {
    token,
    get size() {
      return ids.size
    },
    add,
    addMessage(envelope) {
      hasMessages = true
      flagsOf(ids.add(messageKey(envelope)))
    },
    check,
    get checked() {
      return checked
    },
    take(payloadId) {
      const number = ids.numberOf(payloadId)
      if (number < 0) return null
      const known = flags[number] ?? 0
      if ((known & stored) !== 0) return 'stored'
      if ((known & delivered) !== 0) return 'delivered'
      if ((known & imported) !== 0) return 'imported'
      flags[number] = imported
      return 'new'
    },
    isStored(envelope) {
      const number = ids.numberOf(messageKey(envelope))
      return number >= 0 && ((flags[number] ?? 0) & stored) !== 0
    },
  }

  function add(payloadId: string, deviceTime: DeviceTime): void {
    flagsOf(ids.add(payloadId))
    from = Math.min(from, deviceTime ?? Number.NEGATIVE_INFINITY)
    to = Math.max(to, deviceTime ?? Number.POSITIVE_INFINITY)
  }

  function flagsOf(number: number): void {
    if (number < flags.length) return
    const more = new Uint8Array(flags.length * 2)
    more.set(flags)
    flags = more
  }

  async function check(
    { withoutLedger }: { withoutLedger: boolean },
    signal: AbortSignal,
  ): Promise<ImportCheck> {
    const counts = { stored: 0, delivered: 0 }
    const mark = (id: string, flag: number): boolean => {
      const number = ids.numberOf(id)
      const known = number < 0 ? flag : (flags[number] ?? 0)
      if ((known & (stored | delivered)) !== 0) return false
      flags[number] = known | flag
      return true
    }
    await spool.eachStored(
      {
        payload: (id) => void (counts.stored += mark(id, stored) ? 1 : 0),
        message: hasMessages ? (envelope) => void mark(messageKey(envelope), stored) : null,
      },
      signal,
    )
    const visit = (id: string) => void (counts.delivered += mark(id, delivered) ? 1 : 0)
    const found = withoutLedger
      ? ({ kind: 'unavailable', why: 'It was not asked.' } as const)
      : await deliveredIn({ from, to }, visit, signal)
    if (found.kind === 'unavailable' && !withoutLedger) throw withoutAnswer(found.why)
    checked = true
    return { planned: ids.size, ...counts, ledgerSince: found.kind === 'asked' ? found.since : null }
  }
}

function withoutAnswer(why: string): GatewayError {
  return new GatewayError('LEDGER_UNUSABLE', {
    what: 'The ledger cannot say which payloads were delivered already.',
    why,
    act: 'Nothing was imported. With --without-ledger, payloads that were delivered already are sent again.',
  })
}

/** Names a message by its content, in the form of a payloadId. */
function messageKey(envelope: Envelope): string {
  const { topic, bytes, clientId, arrivedAt, records } = envelope
  const content = JSON.stringify([topic, bytes, clientId, arrivedAt, records]) + propertiesText(envelope)
  const digest = hash('sha256', content, 'hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-${digest.slice(12, 16)}-${digest.slice(16, 20)}-${digest.slice(20, 32)}`
}
