// iso-times.ts: answers for people and programs: the same value with times as ISO 8601 strings. Inside, times
// are numbers; every answer over HTTP and every `--json` passes here, so a time looks the same everywhere.
//
// `laterMs` is added to each: our time minus the clock that they were noted by.
//
// A time is a number with one of the names below. What devices sent, and counts under names that a config
// chooses, are left as they are.

type TimeName = 'at' | 'since' | 'now' | 'deviceTime' | 'ledgerSince' | `${string}At`
type ForeignName = 'payload' | 'payloads' | 'arrival' | 'result'

type Plain = string | number | boolean | null | undefined

export type IsoTimes<Value> = Value extends Plain
  ? Value
  : Value extends readonly (infer Part)[]
    ? IsoTimes<Part>[]
    : Value extends object
      ? {
          [Name in keyof Value]: Name extends ForeignName
            ? Value[Name]
            : Name extends TimeName
              ? TimeOf<Value[Name]>
              : IsoTimes<Value[Name]>
        }
      : Value

type TimeOf<Value> = Value extends number ? string : IsoTimes<Value>

const timeName = /^(at|since|now|deviceTime|ledgerSince|.*At)$/
const foreignName = /^(payload|payloads|arrival|result)$/

export function isoTimes<Value>(value: Value, laterMs = 0): IsoTimes<Value> {
  return converted(value, laterMs) as IsoTimes<Value>
}

function converted(value: unknown, laterMs: number): unknown {
  if (Array.isArray(value)) return value.map((one) => converted(one, laterMs))
  if (typeof value !== 'object' || value === null) return value
  const made: Record<string, unknown> = {}
  for (const [name, part] of Object.entries(value)) {
    if (foreignName.test(name)) made[name] = part
    else if (typeof part === 'number' && timeName.test(name)) made[name] = isoText(part + laterMs)
    else made[name] = converted(part, laterMs)
  }
  return made
}

/** Null where no calendar has the time: devices send any number. */
function isoText(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
