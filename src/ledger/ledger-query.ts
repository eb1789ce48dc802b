// ledger-query.ts: what the ledger may be asked, read from texts: options of the command line, or the query of a URL.

import type { EpochMs } from '../std/clock.ts'
import { quote } from '../std/quote.ts'
import type { LedgerOutcome } from '../receipts/receipts.ts'
import { parseTimeArgument } from './time-argument.ts'

/** Everything that is said must hold. */
export type LedgerQuery = {
  device?: string
  /** Of the device time, both included. */
  from?: EpochMs
  to?: EpochMs
  payload?: string
  batch?: string
  request?: string
  outcome?: LedgerOutcome
  limit: number
  /** Goes on behind the last entry of an answer. */
  after?: Cursor
}

/** A receipt's number, and a payload in it; whatever comes next is older. */
export type Cursor = { number: number; index: number }

const names = [
  'device',
  'at',
  'from',
  'to',
  'payload',
  'batch',
  'request',
  'outcome',
  'limit',
  'after',
] as const

type Name = (typeof names)[number]

/** What is said, by name; unknown names are refused. */
export type LedgerParams = Readonly<Record<string, string | undefined>>

export type ParsedLedgerQuery =
  { kind: 'question'; question: LedgerQuery } | { kind: 'invalid'; what: string; why: string; act: string }

export const limitMax = 10_000
const limitDefault = 100
/** `at` is so long before and behind the time that is said. */
const aroundMs = 60_000
const textLengthMax = 4096
const outcomes: readonly LedgerOutcome[] = ['delivered', 'retried', 'dead']
/** `now` says which day is today, for times without a date. */
export function parseLedgerQuery(words: LedgerParams, now: EpochMs): ParsedLedgerQuery {
  for (const name of Object.keys(words))
    if (!names.some((known) => known === name))
      return wrong(`The ledger is not asked by ${quote(name, 50)}.`, `It knows ${names.join(', ')}.`)
  const { device, payload, batch, request, ...others }: Known = words
  const question: LedgerQuery = { limit: limitDefault }
  for (const [name, text] of Object.entries({ device, payload, batch, request })) {
    if (text === undefined) continue
    if (text === '' || text.length > textLengthMax)
      return wrong(
        `${name} is ${text === '' ? 'empty' : 'too long'}.`,
        'Nothing in the ledger is called that.',
      )
    question[name as 'device'] = text
  }
  return readTimes(others, now, question) ?? readOthers(others, question) ?? { kind: 'question', question }
}

type Known = Partial<Record<Name, string | undefined>>
type InvalidQuery = Extract<ParsedLedgerQuery, { kind: 'invalid' }>

function readTimes({ at, from, to }: Known, now: EpochMs, question: LedgerQuery): InvalidQuery | null {
  if (at !== undefined && (from !== undefined || to !== undefined))
    return wrong('Both `at` and `from` or `to` are given.', 'Each of them says which time is meant.')
  for (const [name, text] of Object.entries({ at, from, to })) {
    if (text === undefined) continue
    const moment = parseTimeArgument(text, now)
    if (moment.kind === 'invalid') return wrong(`${name} is no time: ${quote(text, 50)}.`, moment.why)
    if (name !== 'to') question.from = moment.at - (name === 'at' ? aroundMs : 0)
    if (name !== 'from') question.to = moment.at + (name === 'at' ? aroundMs : 0)
  }
  if (question.from !== undefined && question.to !== undefined && question.from > question.to)
    return wrong('`from` is later than `to`.', 'No time lies between them.')
  return null
}

function readOthers({ outcome, limit, after }: Known, question: LedgerQuery): InvalidQuery | null {
  if (outcome !== undefined) {
    const found = outcomes.find((one) => one === outcome)
    if (found === undefined)
      return wrong(`There is no outcome ${quote(outcome, 50)}.`, `It is ${outcomes.join(', ')}.`)
    question.outcome = found
  }
  if (limit !== undefined) {
    const number = /^\d{1,9}$/.test(limit) ? Number(limit) : 0
    if (number < 1) return wrong(`limit is no number from 1 on: ${quote(limit, 50)}.`, 'It counts entries.')
    question.limit = Math.min(number, limitMax)
  }
  if (after !== undefined) {
    const [, number, index] = /^(\d{1,15})\.(\d{1,9})$/.exec(after) ?? []
    if (number === undefined || index === undefined)
      return wrong('`after` is not what an answer gave as `next`.', 'It says where the next answer begins.')
    question.after = { number: Number(number), index: Number(index) }
  }
  return null
}

function wrong(what: string, why: string): InvalidQuery {
  return { kind: 'invalid', what, why, act: 'See `telemetry-gateway ledger --help`.' }
}

export function cursorText({ number, index }: Cursor): string {
  return `${number}.${index}`
}
