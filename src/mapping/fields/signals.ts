// signals.ts: the signals of a payload (ingestion-api.md 2.5), as text.
//
// A value is a decimal in a string and never passes through a float (decimal.ts). A value that cannot be
// exact - a number above 2^53, a counter that means "no value" - is left out and counted, not rounded.
import type { Scale } from './decimal.ts'
import { signalIdTail } from '../identity.ts'
import type { Read } from '../path/path.ts'
import { isWithoutValue, rejects, type Bounds } from '../plausibility/plausibility.ts'
import { notingWritten, type Notable } from './field-notes.ts'
import { jsonString } from './json-string.ts'
import { decimalFault, decimalFrom, type DecimalFault } from '../path/value.ts'
import type { RecordContext } from '../types.ts'

export type SignalField = Notable & {
  source: string
  type: string
  valueUnit: string | undefined
  part: string | undefined
  read: Read
  scale: Scale
  /** A distance or duration since the vehicle was built: a value below zero means "absent". */
  neverNegative: boolean
  bounds: Bounds | null
  /** The place of its value in `counters` of the context; -1 for a signal that is not judged so. */
  slot: number
  /** Of a field with a slot: the values of the message that it is made of. */
  written: readonly Read[]
  /** Its bit among the fields of the source (lost-fields/watched-fields.ts); 0 for none. */
  bit: number
}

/** `","type":"...","value":"..."...}`: the text after the id of the signal; undefined without a value. */
type WriteSignal = (context: RecordContext) => string | undefined

export type WriteSignals = (context: RecordContext) => readonly string[]

const noSignals: readonly string[] = []

export function compileSignals(fields: readonly SignalField[]): WriteSignals {
  if (fields.length === 0) return () => noSignals
  const kinds = Map.groupBy(fields, ({ type, part }) => `${part ?? ''}|${type}`)
  const writers = [...kinds.values()].map(compileKind)
  return (context) => {
    const texts: string[] = []
    for (const write of writers) {
      const text = write(context)
      if (text !== undefined) texts.push(text)
    }
    return texts
  }
}

/** `,"signals":[...]` with ids made of the payload's digest. An empty text is a signal that is not sent. */
export function signalsText(signals: readonly string[], idHead: string): string {
  let text = ''
  for (let index = 0; index < signals.length; index += 1) {
    const signal = signals[index] ?? ''
    if (signal !== '')
      text += `${text === '' ? ',"signals":[' : ','}{"id":"${idHead}${tailOf(index)}${signal}`
  }
  return text === '' ? '' : `${text}]`
}

const tails: string[] = []

function tailOf(index: number): string {
  return (tails[index] ??= signalIdTail(index))
}

/** Of several fields of one type and part the first that has a value. */
function compileKind(fields: readonly SignalField[]): WriteSignal {
  const [only, ...others] = fields.map(compileSignal)
  if (only && others.length === 0) return only
  const writers = only ? [only, ...others] : others
  return (context) => {
    for (const write of writers) {
      const text = write(context)
      if (text !== undefined) return text
    }
    return undefined
  }
}

function compileSignal(field: SignalField): WriteSignal {
  const { source, type, read, scale, neverNegative, bounds, slot, written, bit } = field
  const plainLength = bounds === null ? 0 : plainLengthOf(bounds)
  const { head, tail } = signalFrame(field)
  const omitted = (why: DecimalFault | 'negative' | 'out of range') => `${source}|${type}|${why}`
  const faults = {
    'not a number': omitted('not a number'),
    'not exact': omitted('not exact'),
    'a placeholder': omitted('a placeholder'),
    negative: omitted('negative'),
    'out of range': omitted('out of range'),
  }
  return notingWritten(field, (context) => {
    if ((context.unwanted & bit) !== 0) return undefined
    const raw = read(context)
    const value = decimalFrom(raw)
    if (value === undefined) {
      const fault = decimalFault(raw)
      if (fault === 'a placeholder') context.leftOut = true
      return fault === 'absent' ? undefined : context.omit(faults[fault])
    }
    const scaled = scale(value)
    if (scaled === undefined) return context.omit(faults['out of range'])
    if (neverNegative && scaled.charCodeAt(0) === 0x2d) return context.omit(faults.negative)
    if (bounds !== null && (scaled.length >= plainLength || scaled.charCodeAt(0) === 0x2d)) {
      const number = Number(scaled)
      if (!(number >= bounds.min && number <= bounds.max) && rejects(bounds, number, context))
        return undefined
    }
    if (bounds?.unset && isWithoutValue(bounds, Number(scaled), Number(value), context)) return undefined
    // The same text is the same number, which need not be parsed.
    const { counters } = context
    if (slot >= 0 && counters !== null) {
      counters.values[slot] = scaled === value && typeof raw === 'number' ? raw : Number(scaled)
      counters.reads[slot] = written
    }
    context.present |= bit
    return head + scaled + tail
  })
}

/** What stands before and after the value of a signal, from the end of its id on. */
export function signalFrame({ type, valueUnit, part }: Pick<SignalField, 'type' | 'valueUnit' | 'part'>) {
  const head = `","type":${jsonString(type)},"value":"`
  const unit = valueUnit === undefined ? '"' : `","valueUnit":${jsonString(valueUnit)}`
  return { head, tail: unit + (part === undefined ? '}' : `,"assetPart":${jsonString(part)}}`) }
}

/** A decimal text without a minus that is shorter than this is within the bounds: it need not be parsed. */
function plainLengthOf({ min, max }: Bounds): number {
  return min <= 0 && max >= 1 ? String(BigInt(Math.floor(max))).length : 0
}
