// payload-values.ts: the values that a payload may have, for the rating of a mapping and for what it does not
// send.

import type { MappedPayload } from '../domain/payload.ts'

type Body = { gps?: Record<string, unknown>; signals?: { type: string }[] }

type PayloadValue = {
  title: string
  /** Behind the sentence that it is missing. */
  more?: string
  weight: number
  /** It is missed in payloads with a position. */
  ofPosition?: boolean
  /** It depends on the model of the device. */
  ofModel?: boolean
  isIn(body: Body, payload: MappedPayload): boolean
}

const hasSignal = (wanted: string) => (body: Body) =>
  body.signals?.some(({ type }) => type === wanted) === true
const hasGps = (name: string) => (body: Body) => body.gps?.[name] !== undefined

const valuesByName = {
  position: { title: 'position', weight: 2, isIn: ({ gps }) => gps !== undefined },
  ownTime: {
    title: 'device time',
    more: ': the arrival time is sent',
    weight: 2,
    isIn: (_body, { deviceTime }) => deviceTime !== null,
  },
  speed: { title: 'speed', weight: 1, ofPosition: true, isIn: hasGps('speed') },
  heading: { title: 'heading', weight: 1, ofPosition: true, isIn: hasGps('heading') },
  motion: { title: 'motion', weight: 1, ofPosition: true, isIn: hasGps('inMotion') },
  odometer: { title: 'odometer', weight: 1, ofModel: true, isIn: hasSignal('OBD_LIFETIME_ODOMETER') },
  hours: { title: 'engine hours', weight: 1, ofModel: true, isIn: hasSignal('OBD_TOTAL_ENGINE_TIME') },
} as const satisfies Record<string, PayloadValue>

export type ValueName = keyof typeof valuesByName

export const payloadValues = Object.entries(valuesByName) as [ValueName, PayloadValue][]

/** How many payloads there are, and how many of them have each value. */
export type FieldCounts = Record<ValueName | 'payloads', number>

export function newCounts(): FieldCounts {
  const zeros = payloadValues.map(([name]) => [name, 0] as const)
  return { payloads: 0, ...(Object.fromEntries(zeros) as Record<ValueName, number>) }
}

export function countValues(counts: FieldCounts, payload: MappedPayload): void {
  const body = JSON.parse(payload.json) as Body
  counts.payloads += 1
  for (const [name, { isIn }] of payloadValues) if (isIn(body, payload)) counts[name] += 1
}

/** 1 where each payload has all values. */
export function shareOf(counts: FieldCounts): number {
  const sum = payloadValues.reduce((all, [name, { weight }]) => all + weight * counts[name], 0)
  const whole = payloadValues.reduce((all, [, { weight }]) => all + weight, 0)
  return sum / (counts.payloads * whole)
}
