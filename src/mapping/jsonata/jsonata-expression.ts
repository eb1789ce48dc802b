// jsonata-expression.ts: the types and limits that the two threads of JSONata share, and the check of an
// expression when the config is read. Only a config with an expression loads the parser.

import { createRequire } from 'node:module'
import { messageOf } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import type { UserProperties } from '../../domain/message.ts'
import type { PacketValues } from '../path/packet-properties.ts'
import { Malformed } from '../path/text-cursor.ts'

export type ExpressionLimits = {
  /** For one message. Where JSONata can, it stops the expression a little earlier. */
  timeoutMs: number
  /** Depth of function calls, and of nesting in a result. */
  depthMax: number
  /** Elements of any list in the expression, and values in its result. */
  sequenceMax: number
  /** Characters of all texts in a result, together. */
  resultTextMax: number
}

/** The limits of the daemon, and of the commands that show its mapping. */
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

/** The result of an expression for a message; `undefined` when it selects nothing. */
export type ExpressionResult = { kind: 'value'; value: unknown } | ExpressionRefusal

/** The start options of the worker. `progress`: see the slots below. */
export type WorkerStart = {
  expressions: readonly (readonly [source: string, text: string])[]
  limits: ExpressionLimits
  progress: SharedArrayBuffer
}

/** Properties of the message (MQTT 5): an expression reads them as `$properties` and `$packet`. */
export type WorkerJob = {
  source: string
  input: unknown
  properties: UserProperties | null
  packet: PacketValues | null
}

/** Slots in `progress`: the current job in the batch (`noJob`: none), and when it started. */
export const jobSlot = 0
export const sinceSlot = 1
export const noJob = -1

/** Milliseconds of the monotonic clock, the same in all threads of the process, modulo 2^31. */
export function ticksMs(): number {
  return Number((process.hrtime.bigint() / 1_000_000n) & 0x7fff_ffffn)
}

/** From one reading of `ticksMs` to a later one. */
export function elapsedMs(since: number, now: number): number {
  return (now - since) & 0x7fff_ffff
}

/** JSONata throws objects that are not errors, with a code, a message and sometimes a position. */
type Thrown = { code?: unknown; message?: unknown; position?: unknown }

export function thrownOf(thrown: unknown): { code: string; message: string; position: number | null } {
  const { code, message, position } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Thrown
  return {
    code: typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message : messageOf(thrown),
    position: typeof position === 'number' ? position : null,
  }
}

/** Throws Malformed, with the position, for a text that is not a JSONata expression. */
export function checkExpression(text: string): void {
  const jsonata = createRequire(import.meta.url)('jsonata') as typeof import('jsonata')
  try {
    jsonata(text)
  } catch (error) {
    const { message, position } = thrownOf(error)
    // The position is the number of characters that JSONata has read.
    const near = position === null ? '' : quote(text.slice(Math.max(0, position - 12), position + 12))
    const place = position === null ? '' : ` at position ${position} near ${near}`
    throw new Malformed(`is not a JSONata expression: ${message}${place}`)
  }
}
