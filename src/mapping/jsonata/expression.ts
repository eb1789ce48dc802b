// expression.ts: what the two threads of the JSONata escape hatch agree on, and the check of an expression
// when the config is read. The parser is loaded only by a config that has an expression.

import { createRequire } from 'node:module'
import { messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { Malformed } from '../path/text-cursor.ts'

export type ExpressionLimits = {
  /** For one message. The expression stops itself a little earlier where it can. */
  timeoutMs: number
  /** How deep functions may call each other, and how deep a result may be nested. */
  depthMax: number
  /** Elements of any list that the expression makes, and values in its result. */
  sequenceMax: number
  /** Characters of all texts in a result. */
  resultTextMax: number
}

/** Of the daemon, and of everybody who shows what it would do. */
export const expressionLimits: ExpressionLimits = {
  timeoutMs: 250,
  depthMax: 100,
  sequenceMax: 10_000,
  resultTextMax: 1024 * 1024,
}

export type ExpressionRefusal = {
  kind: 'refused'
  reason: 'EXPRESSION_TIMEOUT' | 'EXPRESSION_LIMIT' | 'EXPRESSION_FAILED'
  /** A sentence. */
  detail: string
}

/** What an expression made of a message; `undefined` where it selects nothing. */
export type ExpressionResult = { kind: 'value'; value: unknown } | ExpressionRefusal

/** What the worker is started with. `progress`: see the places below. */
export type WorkerStart = {
  expressions: readonly (readonly [source: string, text: string])[]
  limits: ExpressionLimits
  progress: SharedArrayBuffer
}

export type WorkerJob = { source: string; input: unknown }

/** Places in `progress`: which job of the batch is evaluated now (`noJob`: none), and since when. */
export const jobPlace = 0
export const sincePlace = 1
export const noJob = -1

/** Milliseconds of the process' monotonic clock, the same in all its threads, modulo 2^31. */
export function ticksMs(): number {
  return Number((process.hrtime.bigint() / 1_000_000n) & 0x7fff_ffffn)
}

/** From one reading of `ticksMs` to a later one. */
export function elapsedMs(since: number, now: number): number {
  return (now - since) & 0x7fff_ffff
}

/** JSONata throws objects that are no errors, with a code, a message, and at times a position. */
type Thrown = { code?: unknown; message?: unknown; position?: unknown }

export function thrownOf(thrown: unknown): { code: string; message: string; position: number | null } {
  const { code, message, position } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Thrown
  return {
    code: typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message : messageOf(thrown),
    position: typeof position === 'number' ? position : null,
  }
}

/** Throws Malformed with the position for a text that is no JSONata expression. */
export function checkExpression(text: string): void {
  const jsonata = createRequire(import.meta.url)('jsonata') as typeof import('jsonata')
  try {
    jsonata(text)
  } catch (error) {
    const { message, position } = thrownOf(error)
    // JSONata counts the characters that it has read.
    const near = position === null ? '' : quote(text.slice(Math.max(0, position - 12), position + 12))
    const place = position === null ? '' : ` at position ${position} near ${near}`
    throw new Malformed(`is no JSONata expression: ${message}${place}`)
  }
}
