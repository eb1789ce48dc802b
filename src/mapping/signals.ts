// signals.ts: the signals of a payload (ingestion-api.md 2.5), as text.
//
// A value is a decimal in a string and never passes through a float: see decimal.ts. What cannot be exact - a
// number above 2^53, a counter that says "no value" - is left out and counted, not rounded.

import type { Attempt } from './attempt.ts'
import type { Scale } from './decimal.ts'
import { signalIdTail } from './identity.ts'
import type { Read } from './path.ts'
import { jsonString } from './text.ts'
import { decimalFault, decimalFrom, type DecimalFault } from './value.ts'

export type SignalField = {
  source: string
  type: string
  valueUnit: string | undefined
  part: string | undefined
  read: Read
  scale: Scale
  /** Stands in where the value is absent. */
  otherwise: unknown
  /** A distance or duration since the vehicle was built: below zero means that there is none. */
  neverNegative: boolean
}

/** `","type":"...","value":"..."...}`, what follows the signal's id; undefined where there is no value. */
type WriteSignal = (record: unknown, root: unknown, attempt: Attempt) => string | undefined

export type WriteSignals = (record: unknown, root: unknown, attempt: Attempt) => readonly string[]

const noSignals: readonly string[] = []

export function compileSignals(fields: readonly SignalField[]): WriteSignals {
  if (fields.length === 0) return () => noSignals
  const writers = fields.map(compileSignal)
  return (record, root, attempt) => {
    const texts: string[] = []
    for (const write of writers) {
      const text = write(record, root, attempt)
      if (text !== undefined) texts.push(text)
    }
    return texts
  }
}

/** `,"signals":[...]` with the ids that follow from the payload's digest. */
export function signalsText(signals: readonly string[], idHead: string): string {
  let text = ''
  for (let index = 0; index < signals.length; index += 1) {
    text += `${index === 0 ? ',"signals":[' : ','}{"id":"${idHead}${tailOf(index)}${signals[index] ?? ''}`
  }
  return text === '' ? '' : `${text}]`
}

const tails: string[] = []

function tailOf(index: number): string {
  return (tails[index] ??= signalIdTail(index))
}

function compileSignal(field: SignalField): WriteSignal {
  const { source, type, valueUnit, part, read, scale, otherwise, neverNegative } = field
  const head = `","type":${jsonString(type)},"value":"`
  const tail =
    (valueUnit === undefined ? '"' : `","valueUnit":${jsonString(valueUnit)}`) +
    (part === undefined ? '}' : `,"assetPart":${jsonString(part)}}`)
  const omitted = (why: DecimalFault | 'negative' | 'out of range') => `${source}|${type}|${why}`
  const faults = {
    'not a number': omitted('not a number'),
    'not exact': omitted('not exact'),
    'a placeholder': omitted('a placeholder'),
    negative: omitted('negative'),
    'out of range': omitted('out of range'),
  }
  return (record, root, attempt) => {
    const raw = read(record, root) ?? otherwise
    const value = decimalFrom(raw)
    if (value === undefined) {
      const fault = decimalFault(raw)
      return fault === 'absent' ? undefined : attempt.omit(faults[fault])
    }
    const scaled = scale(value)
    if (scaled === undefined) return attempt.omit(faults['out of range'])
    if (neverNegative && scaled.charCodeAt(0) === 0x2d) return attempt.omit(faults.negative)
    return head + scaled + tail
  }
}
