// ledger-query.ts: parses a ledger query from texts: options of the command line, or parameters of a URL.

import type { EpochMs } from '../std/clock.ts'
import { quote } from '../std/quote.ts'
import { parseTimeArgument } from '../std/time-argument.ts'
import { ledgerOutcomes } from '../domain/settlement.ts'
import type { Cursor, LedgerQuery } from './types.ts'

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

/** Texts by parameter name; an unknown name is an error. */
export type LedgerParams = Readonly<Record<string, string | undefined>>

export type ParsedLedgerQuery =
  { kind: 'query'; query: LedgerQuery } | { kind: 'invalid'; what: string; why: string; act: string }

export const limitMax = 10_000
const limitDefault = 100
/** `at` selects this long before and after the given time. */
const aroundMs = 60_000
const textLengthMax = 4096

/** `now` says which day is today, for times without a date. */
export function parseLedgerQuery(params: LedgerParams, now: EpochMs): ParsedLedgerQuery {
  for (const name of Object.keys(params))
    if (!names.some((known) => known === name))
      return invalid(`Unknown parameter ${quote(name, 50)}.`, `Use ${names.join(', ')}.`)
  const { device, payload, batch, request, ...others }: Known = params
  const query: LedgerQuery = { limit: limitDefault }
  for (const [name, text] of Object.entries({ device, payload, batch, request })) {
    if (text === undefined) continue
    if (text === '' || text.length > textLengthMax)
      return invalid(
        `${name} is ${text === '' ? 'empty' : 'too long'}.`,
        `It must have 1 to ${textLengthMax} characters.`,
      )
    query[name as 'device'] = text
  }
  return addTimes(others, now, query) ?? addOthers(others, query) ?? { kind: 'query', query }
}

type Known = Partial<Record<(typeof names)[number], string | undefined>>
type InvalidQuery = Extract<ParsedLedgerQuery, { kind: 'invalid' }>

function addTimes({ at, from, to }: Known, now: EpochMs, query: LedgerQuery): InvalidQuery | null {
  if (at !== undefined && (from !== undefined || to !== undefined))
    return invalid('Both `at` and `from` or `to` are given.', 'Each of them sets the time range.')
  for (const [name, text] of Object.entries({ at, from, to })) {
    if (text === undefined) continue
    const time = parseTimeArgument(text, now)
    if (time.kind === 'invalid') return invalid(`${name} is not a time: ${quote(text, 50)}.`, time.why)
    if (name !== 'to') query.from = time.at - (name === 'at' ? aroundMs : 0)
    if (name !== 'from') query.to = time.at + (name === 'at' ? aroundMs : 0)
  }
  if (query.from !== undefined && query.to !== undefined && query.from > query.to)
    return invalid('`from` is later than `to`.', 'No time is between them.')
  return null
}

function addOthers({ outcome, limit, after }: Known, query: LedgerQuery): InvalidQuery | null {
  if (outcome !== undefined) {
    const found = ledgerOutcomes.find((one) => one === outcome)
    if (found === undefined)
      return invalid(`There is no outcome ${quote(outcome, 50)}.`, `Use ${ledgerOutcomes.join(', ')}.`)
    query.outcome = found
  }
  if (limit !== undefined) {
    const number = /^\d{1,9}$/.test(limit) ? Number(limit) : 0
    if (number < 1)
      return invalid(`limit is ${quote(limit, 50)}.`, 'It must be a whole number of entries, 1 or more.')
    query.limit = Math.min(number, limitMax)
  }
  if (after !== undefined) {
    const cursor = parseCursor(after)
    if (cursor === null) return invalid('`after` is not a cursor.', 'Use the `next` of the previous answer.')
    query.after = cursor
  }
  return null
}

function invalid(what: string, why: string): InvalidQuery {
  return { kind: 'invalid', what, why, act: 'See `telemetry-gateway ledger --help`.' }
}

export function cursorText({ number, index }: Cursor): string {
  return `${number}.${index}`
}

/** Null where the text is not one of `cursorText`. */
function parseCursor(text: string): Cursor | null {
  const [, number, index] = /^(\d{1,15})\.(\d{1,9})$/.exec(text) ?? []
  return number === undefined || index === undefined ? null : { number: Number(number), index: Number(index) }
}
